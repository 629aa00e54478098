"""The ways to resample pixels: one table, of names only, so nothing loads until it is asked for."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Literal, Protocol, TypeAlias, get_args

from readers.errors import MissingDependencyError, OptionError
from readers.rectangle import Box
from readers.sample import Pixels

Interpolation: TypeAlias = Literal["bilinear", "bicubic", "linear", "area"]
"""How pixels are resampled.

* `bilinear`, `bicubic`: antialiased, Pillow's, which are torchvision's.
* `linear`, `area`: OpenCV's `INTER_LINEAR`, not antialiased, and `INTER_AREA`.
"""

_RESAMPLERS = {
    "bilinear": ("readers.transforms.with_pillow", "BILINEAR"),
    "bicubic": ("readers.transforms.with_pillow", "BICUBIC"),
    "linear": ("readers.transforms.with_opencv", "LINEAR"),
    "area": ("readers.transforms.with_opencv", "AREA"),
}


class Resampler(Protocol):
    """Resamples part of a picture."""

    @property
    def reach(self) -> float:
        """How far beyond the box it looks, in pixels of the result where it is smaller."""

    def __call__(self, pixels: Pixels, box: Box, out: Pixels, /, *, mirrored: bool) -> None:
        """Fills an array with the pixels in a box.

        Args:
            pixels: `uint8`, shape (height, width, 3); rows may lie apart.
            box: Part of them.
            out: `uint8`, shape (height, width, 3), C-contiguous.
            mirrored: Whether left and right change places.
        """


def check_interpolation(name: str) -> None:
    """Sees whether there is an interpolation of that name, and its library.

    Raises:
        OptionError: There is none.
        MissingDependencyError: Its library isn't installed.
    """
    if name not in _RESAMPLERS:
        known = ", ".join(get_args(Interpolation))
        raise OptionError(f"unknown interpolation {name!r} (known: {known})")
    find_resampler(name)


@cache
def find_resampler(name: str) -> Resampler:
    """Loads what resamples.

    Raises:
        MissingDependencyError: Its library isn't installed.
    """
    module, attribute = _RESAMPLERS[name]
    try:
        resampler: Resampler = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name != "cv2":
            raise
        raise MissingDependencyError(
            f"interpolation {name!r} needs OpenCV: pip install 'dataset-packer[transforms]'"
        ) from error
    return resampler
