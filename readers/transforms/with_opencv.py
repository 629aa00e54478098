"""Resampling by OpenCV."""

from __future__ import annotations

from dataclasses import dataclass

from readers.opencv import cv2
from readers.rectangle import Box
from readers.sample import Pixels

_LEFT_TO_RIGHT = 1


@dataclass(frozen=True, slots=True)
class OpenCvResampler:
    """Resamples by `cv2.resize`, which takes whole pixels: the box is rounded to them."""

    flag: int
    reach: float = 0

    def __call__(self, pixels: Pixels, box: Box, out: Pixels, /, *, mirrored: bool) -> None:
        """Resamples, see `Resampler`."""
        top, bottom = _rounded(box.top, box.height, pixels.shape[0])
        left, right = _rounded(box.left, box.width, pixels.shape[1])
        part = pixels[top:bottom, left:right]
        size = out.shape[1], out.shape[0]
        if mirrored:
            cv2.flip(cv2.resize(part, size, interpolation=self.flag), _LEFT_TO_RIGHT, out)
        else:
            cv2.resize(part, size, out, interpolation=self.flag)


def _rounded(start: float, length: float, limit: int) -> tuple[int, int]:
    first = min(max(0, round(start)), limit - 1)
    return first, max(first + 1, min(limit, round(start + length)))


LINEAR = OpenCvResampler(cv2.INTER_LINEAR)
AREA = OpenCvResampler(cv2.INTER_AREA)
