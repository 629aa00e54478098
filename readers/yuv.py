"""Pixels as planes: luma at full size, both chromas at half of it each way (YUV 4:2:0).

They take half the memory of RGB. Luma and chroma are those of JFIF (ITU-T T.871): full range, Cb
and Cr with their zero at 128. One after the other, row by row: Y; Cb; Cr. Of an odd height or width
the half is rounded up. With an even height and width that is the order that FFmpeg calls yuvj420p,
and OpenCV I420, though OpenCV's own conversion takes it for limited range.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from readers.errors import MissingDependencyError
from readers.rectangle import Rectangle

if TYPE_CHECKING:
    from types import ModuleType

Color: TypeAlias = Literal["rgb", "yuv420"]
"""What pixels are: RGB, or planes."""

OPENCV = "opencv"
"""Name of the library that converts, whose packages have several."""


@dataclass(frozen=True, slots=True, eq=False)
class Yuv420:
    """The pixels of an image, as planes."""

    data: NDArray[np.uint8]
    """All planes, shape (`yuv_length(height, width)`,), C-contiguous."""
    height: int
    width: int

    def __bytes__(self) -> bytes:
        return self.data.tobytes()

    @property
    def planes(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
        """Y, shape (height, width), Cb and Cr, of half of it: views of `data`."""
        rows, columns = -(-self.height // 2), -(-self.width // 2)
        luma = self.height * self.width
        chroma = rows * columns
        return (
            self.data[:luma].reshape(self.height, self.width),
            self.data[luma : luma + chroma].reshape(rows, columns),
            self.data[luma + chroma :].reshape(rows, columns),
        )

    def to_rgb(self, part: Rectangle | None = None) -> NDArray[np.uint8]:
        """Makes RGB of all, or of a part, which then is what it is in the whole.

        Chroma is interpolated between the centres of the four pixels that share it.

        Args:
            part: Within the image; None for all of it.

        Returns:
            `uint8`, shape (height, width, 3), C-contiguous.

        Raises:
            MissingDependencyError: OpenCV isn't installed.
        """
        whole = Rectangle(0, 0, self.height, self.width)
        pixels: NDArray[np.uint8] = _conversion().to_rgb(self.planes, part or whole)
        return pixels


def yuv_of(pixels: NDArray[np.uint8]) -> Yuv420:
    """Makes planes of RGB; chroma is the mean of four pixels.

    Args:
        pixels: `uint8`, shape (height, width, 3).

    Raises:
        MissingDependencyError: OpenCV isn't installed.
    """
    height, width = pixels.shape[:2]
    planes = _conversion().to_planes(pixels)
    return Yuv420(np.concatenate([plane.reshape(-1) for plane in planes]), height, width)


def yuv_length(height: int, width: int) -> int:
    """Gives the bytes of the planes of an image."""
    return height * width + 2 * (-(-height // 2) * -(-width // 2))


def yuv_lengths(heights: NDArray[np.int64], widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Does so for many images."""
    return heights * widths + 2 * (-(-heights // 2) * -(-widths // 2))


def stored_shape(shape: tuple[int, int, int] | None, color: Color) -> tuple[int, ...] | None:
    """Gives the shape of an array of the bytes of pixels, all of one even size.

    Args:
        shape: Height, width and 3; None for mixed sizes.
        color: `rgb` or `yuv420`.

    Returns:
        The same for RGB; for planes (height * 3 / 2, width), Y above Cb and Cr.
    """
    if shape is None or color == "rgb":
        return shape
    return shape[0] * 3 // 2, shape[1]


def opencv_version() -> str:
    """Gives the version of the library that converts.

    Raises:
        MissingDependencyError: OpenCV isn't installed.
    """
    return cast("str", _conversion().VERSION)


def _conversion() -> ModuleType:
    try:
        return importlib.import_module("readers.yuv_conversion")
    except ModuleNotFoundError as error:
        if error.name != "cv2":
            raise
        raise MissingDependencyError(
            "YUV 4:2:0 needs OpenCV: pip install 'dataset-packer[transforms]'"
        ) from error
