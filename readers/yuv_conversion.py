"""Converts between RGB and planes, by OpenCV."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from readers.opencv import cv2
from readers.rectangle import Rectangle

_Plane: TypeAlias = NDArray[np.uint8]

VERSION: str = cv2.__version__


def to_planes(pixels: _Plane) -> tuple[_Plane, _Plane, _Plane]:
    """Makes Y, Cb and Cr, see `readers.yuv.Yuv420`, of RGB."""
    height, width = pixels.shape[:2]
    converted: Any = cv2.cvtColor(pixels, cv2.COLOR_RGB2YCrCb)
    luma, red, blue = cv2.split(converted)
    half = (-(-width // 2), -(-height // 2))
    smaller: list[Any] = []
    for chroma in (blue, red):
        even = cv2.copyMakeBorder(chroma, 0, height % 2, 0, width % 2, cv2.BORDER_REPLICATE)
        smaller.append(cv2.resize(even, half, interpolation=cv2.INTER_AREA))
    return np.asarray(luma), smaller[0], smaller[1]


def to_rgb(planes: tuple[_Plane, _Plane, _Plane], part: Rectangle) -> _Plane:
    """Makes RGB of a part, shape (height, width, 3)."""
    luma, blue, red = planes
    top, left, height, width = part
    rows, columns = (
        slice(max(0, start // 2 - 1), min(size, -(-(start + length) // 2) + 1))
        for start, length, size in zip((top, left), (height, width), blue.shape, strict=True)
    )
    down, across = top - 2 * rows.start, left - 2 * columns.start
    doubled = []
    for chroma in (red, blue):
        few = chroma[rows, columns]
        size = (2 * few.shape[1], 2 * few.shape[0])
        large = cv2.resize(few, size, interpolation=cv2.INTER_LINEAR)
        doubled.append(large[down : down + height, across : across + width])
    merged = cv2.merge((luma[top : top + height, left : left + width], *doubled))
    rgb: Any = cv2.cvtColor(merged, cv2.COLOR_YCrCb2RGB)
    return np.asarray(rgb)
