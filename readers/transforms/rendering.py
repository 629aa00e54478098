"""Makes the pixels that a chain of views asks for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from readers.decode import Picture, PixelPicture, open_picture
from readers.draws import Draws, current_draws
from readers.errors import OptionError
from readers.rectangle import Box, Rectangle
from readers.sample import Pixels, Sample
from readers.span import decoding
from readers.stored import PIXEL
from readers.transforms.interpolation import Resampler, find_resampler
from readers.transforms.slots import fitting
from readers.transforms.view import View, ViewStep

_DIMENSIONS, _CHANNELS = 3, 3


@dataclass(frozen=True, slots=True)
class Rendering:
    """Decodes and resamples what steps want to see, all of them at once where that can be."""

    steps: Sequence[ViewStep]
    reducing_gap: float | None
    max_pixels: int | None

    def __call__(self, image: Sample | Pixels, /) -> Pixels:
        """Gives the pixels of a sample, or makes others of pixels."""
        return self.write_into(image, None)

    def write_into(self, image: Sample | Pixels, slot: object, /) -> Pixels:
        """Does the same, into an array where one of the right kind is given."""
        if not isinstance(image, Sample):
            image = _checked(image)
        with decoding:
            picture = open_picture(image)
        draws = current_draws()
        done = 0
        while True:
            view, done = self._merge(View.whole(picture.height, picture.width), done, draws)
            if done == len(self.steps):
                return self._render(picture, view, slot)
            picture = PixelPicture(self._render(picture, view, None))

    def _merge(self, view: View, done: int, draws: Draws) -> tuple[View, int]:
        """Takes as many steps as one view can do; at least one, if there is any."""
        for number, step in enumerate(self.steps[done:], done):
            narrowed = step.narrow(view, draws)
            if narrowed is None:
                if number == done:
                    raise OptionError(f"{step!r} refuses to see a picture as a whole")
                return view, number
            view = narrowed
        return view, len(self.steps)

    def _render(self, picture: Picture, view: View, slot: object) -> Pixels:
        out: Pixels = fitting(slot, (*view.size, 3), np.dtype(np.uint8))
        inner = out
        if view.canvas is not None:
            out[...] = 0
            top, left, *_ = view.canvas
            inner = out[top : top + view.height, left : left + view.width]
        if view.interpolation is None:
            with decoding:
                pixels = picture.decode(view.bounds, max_pixels=self.max_pixels).pixels
            _copy(pixels, inner, mirrored=view.mirrored)
        else:
            self._resample(picture, view, find_resampler(view.interpolation), inner)
        return out

    def _resample(self, picture: Picture, view: View, resampler: Resampler, out: Pixels) -> None:
        region = _with_margin(view, resampler.reach)
        down, across = view.height / view.box.height, view.width / view.box.width
        at_least = None
        if (gap := self.reducing_gap) is not None:
            at_least = math.ceil(gap * region.height * down), math.ceil(gap * region.width * across)
        with decoding:
            part = picture.decode(region, at_least=at_least, max_pixels=self.max_pixels)
        # Of a picture that was decoded smaller, the box is smaller too.
        rows, columns = part.box.height / region.height, part.box.width / region.width
        box = Box(
            part.box.top + (view.box.top - region.top) * rows,
            part.box.left + (view.box.left - region.left) * columns,
            view.box.height * rows,
            view.box.width * columns,
        )
        resampler(part.pixels, box, out, mirrored=view.mirrored)


def _with_margin(view: View, reach: float) -> Rectangle:
    """Gives the whole pixels that resampling the box looks at."""
    box, bounds = view.box, view.bounds
    if (*box,) == (*bounds,):
        return bounds
    down = math.ceil(reach * max(1.0, box.height / view.height))
    across = math.ceil(reach * max(1.0, box.width / view.width))
    top = max(bounds.top, math.floor(box.top) - down)
    left = max(bounds.left, math.floor(box.left) - across)
    bottom = min(bounds.top + bounds.height, math.ceil(box.top + box.height) + down)
    right = min(bounds.left + bounds.width, math.ceil(box.left + box.width) + across)
    return Rectangle(top, left, bottom - top, right - left)


def _copy(pixels: Pixels, out: Pixels, *, mirrored: bool) -> None:
    whole = pixels.view(PIXEL)
    out.view(PIXEL)[...] = whole[:, ::-1] if mirrored else whole


def _checked(value: object) -> Pixels:
    """Gives pixels as they can be worked on."""
    if not (
        isinstance(value, np.ndarray)
        and value.dtype == np.uint8
        and value.ndim == _DIMENSIONS
        and value.shape[2] == _CHANNELS
    ):
        found = f"{value.dtype}, shape {value.shape}" if isinstance(value, np.ndarray) else value
        raise OptionError(
            f"crops, resizing and flips take a sample or pixels, uint8, shape (height, width, 3), "
            f"and not {found!r}: Normalize, ChannelsFirst and what changes the type come after them"
        )
    pixels: Pixels = np.ascontiguousarray(value)
    return pixels
