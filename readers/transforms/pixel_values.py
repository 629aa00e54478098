"""What becomes of the numbers of pixels: `Normalize`, and `ChannelsFirst` for their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from readers.errors import OptionError
from readers.sample import Pixels
from readers.transforms.slots import fitting

Layout: TypeAlias = Literal["CHW", "HWC"]
"""The order of an array's dimensions: channel, height, width, or height, width, channel."""

_CHANNELS = 3
_LEVELS = 256


class Normalize:
    """Makes `float32` of pixels: (pixel / 255 - mean) / std, in each channel.

    The values are, to the bit, those of `torchvision.transforms.ToTensor` and `Normalize`.

    Args:
        mean: Of red, green and blue, where 1 is the brightest.
        std: Standard deviations, likewise.
        layout: Of the result; CHW is torchvision's.

    Raises:
        OptionError: A value makes no sense.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], layout: Layout = "CHW") -> None:
        if len(mean) != _CHANNELS or len(std) != _CHANNELS or not all(std):
            raise OptionError(f"mean {mean} and std {std} must be three numbers, and std not zero")
        if layout not in ("CHW", "HWC"):
            raise OptionError(f"layout {layout!r} must be 'CHW' or 'HWC'")
        levels = np.arange(_LEVELS, dtype=np.float32) / np.float32(_LEVELS - 1)
        means, deviations = (np.array(values, np.float32)[:, np.newaxis] for values in (mean, std))
        self._table: NDArray[np.float32] = (levels - means) / deviations
        self._first = layout == "CHW"

    def __call__(self, pixels: Pixels, /) -> NDArray[np.float32]:
        """Gives the normalized pixels; takes `uint8`, shape (height, width, 3)."""
        return self.write_into(pixels, None)

    def write_into(self, pixels: Pixels, slots: object, /) -> NDArray[np.float32]:
        """Does the same, into an array where one of the right kind is given."""
        height, width, channels = pixels.shape
        shape = (channels, height, width) if self._first else pixels.shape
        out = fitting(slots, shape, np.dtype(np.float32))
        planes = out if self._first else out.transpose(2, 0, 1)
        for plane, table, channel in zip(
            planes, self._table, pixels.transpose(2, 0, 1), strict=True
        ):
            # No level is outside of the table, and clipping takes half the time of checking that.
            np.take(table, channel, out=plane, mode="clip")
        return out


class ChannelsFirst:
    """Puts the channels first: (height, width, 3) becomes (3, height, width)."""

    def __call__(self, pixels: NDArray[Any], /) -> NDArray[Any]:
        """Gives the same numbers in another order, C-contiguous."""
        return self.write_into(pixels, None)

    def write_into(self, pixels: NDArray[Any], slots: object, /) -> NDArray[Any]:
        """Does the same, into an array where one of the right kind is given."""
        reordered = pixels.transpose(2, 0, 1)
        out = fitting(slots, reordered.shape, pixels.dtype)
        out[...] = reordered
        return out
