"""A random resized crop and flip with OpenCV's linear interpolation, without antialiasing."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.pipelines.boxes import draw_box, draw_flip


def write_crop(pixels: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
    """Writes a crop into its place in a batch; both have shape (height, width, 3)."""
    top, left, rows, columns = draw_box(*pixels.shape[:2])
    part = pixels[top : top + rows, left : left + columns]
    size = out.shape[1], out.shape[0]
    if draw_flip():
        cv2.flip(cv2.resize(part, size, interpolation=cv2.INTER_LINEAR), 1, dst=out)
    else:
        cv2.resize(part, size, dst=out, interpolation=cv2.INTER_LINEAR)
