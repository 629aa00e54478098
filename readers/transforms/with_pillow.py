"""Resampling by Pillow: antialiased, in the precision of its 8-bit kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from readers.rectangle import Box
from readers.sample import Pixels


@dataclass(frozen=True, slots=True)
class PillowResampler:
    """Resamples by `PIL.Image.Image.resize`."""

    filter: Image.Resampling
    reach: float
    """The filter's support (`Resample.c`)."""

    def __call__(self, pixels: Pixels, box: Box, out: Pixels, /, *, mirrored: bool) -> None:
        """Resamples, see `Resampler`."""
        height, width = out.shape[:2]
        rows, columns = pixels.shape[:2]
        # Sums of fractions may come out beyond the border by their rounding, which Pillow refuses.
        corners = (
            max(0.0, box.left),
            max(0.0, box.top),
            min(float(columns), box.left + box.width),
            min(float(rows), box.top + box.height),
        )
        # Of rows that lie apart Pillow takes byte by byte, which costs seven times this copy.
        image = Image.fromarray(np.ascontiguousarray(pixels))
        image = image.resize((width, height), self.filter, corners)
        if mirrored:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        out[...] = np.asarray(image)


BILINEAR = PillowResampler(Image.Resampling.BILINEAR, 1)
BICUBIC = PillowResampler(Image.Resampling.BICUBIC, 2)
