"""Runs transforms one after the other, having seen to it that only what they need is decoded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, TypeAlias

from readers.decode import MAX_PIXELS
from readers.errors import OptionError
from readers.loading.transform import Slots, Transform, writer_of
from readers.sample import Sample
from readers.transforms.rendering import Rendering
from readers.transforms.view import ViewStep

Step: TypeAlias = "ViewStep | Transform"
"""A transform of this package, or any function of pixels."""


class Compose:
    """Makes of a sample the pixels that a chain of transforms gives, and its label.

    ::

        augment = Compose([RandomResizedCrop(224), RandomHorizontalFlip(), Normalize(mean, std)])
        loader = MonitoredLoader(open_dataset(path), 256, transform=augment, shuffle=True)

    Transforms that choose what is to be seen (crops, `Resize`, flips) say so before anything is
    decoded, and are done as one: the region that they leave is decoded, resampled once and written
    where it belongs in the batch. The pixels are those of one step after the other; but where a
    crop follows a resizing, roundings between Pillow's passes may fall differently. A second
    resampling works on the pixels of the first. So does any function: it gets what the step before
    it gives, `uint8`, shape (height, width, 3), RGB, upright.

    Random numbers are those of the sample, see `readers.draws`: in a loader they depend on its
    seed, the epoch and the number of the sample alone. Functions get theirs from
    `readers.transforms.sample_generator`.

    Args:
        steps: The transforms, the first one first.
        reducing_gap: A JPEG that is large for what becomes of it is decoded at 1/2, 1/4 or 1/8 of
            its size, as long as what is resampled remains this many times as large, each way, as
            the result. At 3 hardly anyone can tell the difference, as Pillow's manual says of its
            option of the same name; a part of 1344 pixels is the smallest that is decoded at 1/2
            for a result of 224. None always decodes at full size, which for `bilinear` and
            `bicubic` gives torchvision's pixels.
        max_pixels: Limit of a picture's height x width; None for no limit.

    Raises:
        OptionError: A value makes no sense.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        reducing_gap: float | None = 3.0,
        max_pixels: int | None = MAX_PIXELS,
    ) -> None:
        if reducing_gap is not None and reducing_gap < 1:
            raise OptionError(f"reducing_gap {reducing_gap} must be at least 1")
        self._parts: list[Transform] = []
        for sees, group in groupby(steps, lambda step: isinstance(step, ViewStep)):
            chosen: list[Any] = list(group)
            self._parts.extend([Rendering(chosen, reducing_gap, max_pixels)] if sees else chosen)
        if not self._parts or not isinstance(self._parts[0], Rendering):
            self._parts.insert(0, Rendering([], reducing_gap, max_pixels))
        self._last_writes_into = writer_of(self._parts[-1])

    def __call__(self, sample: Sample, /) -> tuple[Any, int | None]:
        """Gives what became of the pixels, and the label."""
        return self._apply(sample, None), sample.label

    def write_into(self, sample: Sample, slots: Slots, /) -> tuple[Any, int | None]:
        """Does the same, writing into the batch where the last step can."""
        return self._apply(sample, slots[0] if isinstance(slots, list) else None), sample.label

    def _apply(self, sample: Sample, slot: Slots) -> object:
        value: Any = sample
        for part in self._parts[:-1]:
            value = part(value)
        if self._last_writes_into is None:
            return self._parts[-1](value)
        return self._last_writes_into.write_into(value, slot)
