"""What happens to one sample on its way into a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from numpy.typing import NDArray

from readers.decode import decode
from readers.sample import Image, Pixels, Sample
from readers.span import decoding

Slots: TypeAlias = "NDArray[Any] | dict[object, Slots] | list[Slots] | None"
"""Where a sample's arrays belong in the batch: as the samples are built, an array of the right
shape and dtype in place of each array, None in place of everything else."""

Value_contra = TypeVar("Value_contra", contravariant=True)


class Transform(Protocol):
    """Makes of a value what goes into the batch: an array, a number, or a structure of them."""

    def __call__(self, value: Any, /) -> Any:  # noqa: ANN401 - of any kind
        """Takes the value; the loader calls it from several threads at once."""


@runtime_checkable
class WritesInto(Protocol[Value_contra]):
    """A transform that can write its arrays where they belong, which saves copying them."""

    def write_into(self, value: Value_contra, slots: Slots, /) -> object:
        """Does what calling does; an array may be written into its slot, and returned as it.

        Writing is a choice: an array that doesn't fit its slot is returned as any other.

        Args:
            value: What calling takes.
            slots: As the samples before were built.
        """


def writer_of(transform: Transform) -> WritesInto[Any] | None:
    """Gives a transform as one that can write into slots; None if it can't."""
    return transform if isinstance(transform, WritesInto) else None


class ImageTransform:
    """Decodes a sample's image and applies a function to the pixels.

    Args:
        function: Takes the pixels, `uint8`, shape (height, width, 3), RGB, and gives what goes
            into the batch. If it has `write_into`, it takes the place of the image in the batch as
            well. None leaves the pixels as they are.
        decode: Makes pixels of an image.
    """

    def __init__(
        self,
        function: Transform | None = None,
        *,
        decode: Callable[[Image], Pixels] = decode,
    ) -> None:
        self._function = function
        self._writes_into = None if function is None else writer_of(function)
        self._decode = decode

    def __call__(self, sample: Sample, /) -> tuple[object, int | None]:
        """Gives what became of the pixels, and the label."""
        pixels = self._pixels(sample)
        return (pixels if self._function is None else self._function(pixels)), sample.label

    def write_into(self, sample: Sample, slots: Slots, /) -> tuple[object, int | None]:
        """Does the same, writing where the function can."""
        if self._writes_into is None or not isinstance(slots, list):
            return self(sample)
        return self._writes_into.write_into(self._pixels(sample), slots[0]), sample.label

    def _pixels(self, sample: Sample) -> Pixels:
        with decoding:
            return self._decode(sample.image)


class StandardTransform:
    """What a loader does without a transform: `ImageTransform` for samples, nothing for others."""

    def __init__(self) -> None:
        self._of_sample = ImageTransform()

    def __call__(self, value: object, /) -> object:
        """Gives pixels and label of a sample; anything else as it is."""
        return self._of_sample(value) if isinstance(value, Sample) else value
