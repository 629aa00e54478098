"""Makes upright pixels of a given size of any image: the one rule, for packing and for caches."""

from __future__ import annotations

import importlib.metadata
from typing import Final, Literal, TypeAlias

import numpy as np
from PIL import Image as PillowImage

from readers.decode import Decoded, decode_stored, orient
from readers.header import Encoded, ImageHeader, read_header
from readers.rectangle import turn_size
from readers.sample import JsonValue, Pixels
from readers.yuv import Color

Fit: TypeAlias = Literal["crop", "pad"]
"""How an image of another shape fits a size: the middle of it that has the shape, or all of it, in
the middle of black."""

DECODERS: Final[list[JsonValue]] = ["simplejpeg", "pillow"]
PIXELS = (
    "8-bit RGB turned upright by EXIF orientation; gray in three channels; CMYK to RGB without "
    "colour profile; alpha dropped; high byte of 16-bit samples; first frame"
)
INTERPOLATION = "bicubic, antialiased, from a JPEG decoded at 1, 1/2, 1/4 or 1/8 of its size"
LIBRARIES = ("pillow", "simplejpeg")
"""Those whose versions decide what the pixels are."""

_SCALED_DECODE_GAP = 2
"""How many times the result's size a JPEG is decoded at, at least, before it is resized. At 2 the
result is close to the one from full size, as Pillow's manual says of `reducing_gap`."""


def fitted(
    image: Encoded | Pixels, size: tuple[int, int] | None, fit: Fit, *, max_pixels: int | None
) -> Decoded:
    """Makes pixels of an image, turned upright.

    Args:
        image: An encoded image, or pixels.
        size: Height and width that they are to have, scaled up or down by a bicubic antialiased
            filter; None for the image's own.
        fit: What becomes of an image of another shape.
        max_pixels: Limit of the image's own height x width; None for no limit.

    Returns:
        The pixels, with nothing left to turn.

    Raises:
        SampleError: As for `readers.decode.decode`.
    """
    header = header_of(image)
    upright = turn_size(header.height, header.width, header.orientation)
    if size is None:
        decoded = decoded_for(image, header, None, max_pixels=max_pixels)
        pixels = orient(decoded.pixels, decoded.orientation)
    elif fit == "crop":
        covering = max(_sizes_in_proportion(upright, size))
        decoded = decoded_for(image, header, covering, max_pixels=max_pixels)
        pixels = _cropped(decoded, size)
    else:
        fitting = min(_sizes_in_proportion(upright, size))
        decoded = decoded_for(image, header, fitting, max_pixels=max_pixels)
        pixels = _padded(scaled(decoded, fitting), size)
    return Decoded(pixels, 1, decoded.decoder, decoded.note)


def describe(size: tuple[int, int] | None, fit: Fit, color: Color = "rgb") -> dict[str, JsonValue]:
    """Tells a manifest how `fitted` makes pixels, and what is made of them."""
    facts: dict[str, JsonValue] = {
        "name": "decode",
        "size": None if size is None else list(size),
        "fit": fit,
        "decoders": DECODERS,
        "pixels": PIXELS,
    }
    if size is not None:
        facts["interpolation"] = INTERPOLATION
    return facts if color == "rgb" else facts | {"color": color}


def libraries() -> dict[str, str]:
    """Gives their versions."""
    return {name: importlib.metadata.version(name) for name in LIBRARIES}


def header_of(image: Encoded | Pixels) -> ImageHeader:
    """Reads the header of an encoded image, or makes up that of pixels."""
    if isinstance(image, np.ndarray):
        height, width, components = image.shape
        return ImageHeader("pixels", height, width, 1, components)
    return read_header(image)


def decoded_for(
    image: Encoded | Pixels,
    header: ImageHeader,
    size: tuple[int, int] | None,
    *,
    max_pixels: int | None,
) -> Decoded:
    """Makes pixels of an image, large enough to be resized to an upright size."""
    if isinstance(image, np.ndarray):
        return Decoded(image, 1, None, None)
    at_least = None
    if size is not None:
        height, width = turn_size(*size, header.orientation)
        at_least = height * _SCALED_DECODE_GAP, width * _SCALED_DECODE_GAP
    return decode_stored(image, header, max_pixels=max_pixels, at_least=at_least)


def in_proportion(length: int, target: int, reference: int) -> int:
    """Computes length * target / reference, rounded half up, at least 1."""
    return max(1, (2 * length * target + reference) // (2 * reference))


def scaled(decoded: Decoded, size: tuple[int, int]) -> Pixels:
    """Scales all of an image to an upright size and turns it."""
    stored = turn_size(*size, decoded.orientation)
    pixels = decoded.pixels
    if pixels.shape[:2] != stored:
        pixels = _resampled(pixels, stored, (0, 0, pixels.shape[1], pixels.shape[0]))
    return orient(pixels, decoded.orientation)


def _sizes_in_proportion(
    upright: tuple[int, int], size: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Scales a size to the height and to the width of another.

    The larger of the two covers the other, the smaller fits into it; tuples compare in that order.
    """
    to_height = size[0], in_proportion(upright[1], size[0], upright[0])
    to_width = in_proportion(upright[0], size[1], upright[1]), size[1]
    return to_height, to_width


def _cropped(decoded: Decoded, size: tuple[int, int]) -> Pixels:
    """Scales the middle of an image that has the shape of an upright size, and turns it."""
    height, width = turn_size(*size, decoded.orientation)
    pixels = decoded.pixels
    rows, columns = pixels.shape[:2]
    if (rows, columns) != (height, width):
        used_rows = min(rows, columns * height / width)
        used_columns = min(columns, rows * width / height)
        top, left = (rows - used_rows) / 2, (columns - used_columns) / 2
        box = (left, top, left + used_columns, top + used_rows)
        pixels = _resampled(pixels, (height, width), box)
    return orient(pixels, decoded.orientation)


def _padded(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Puts an image into the middle of black."""
    rows, columns = pixels.shape[:2]
    if (rows, columns) == size:
        return pixels
    top, left = (size[0] - rows) // 2, (size[1] - columns) // 2
    canvas = np.zeros((*size, 3), np.uint8)
    canvas[top : top + rows, left : left + columns] = pixels
    return canvas


def _resampled(
    pixels: Pixels, size: tuple[int, int], box: tuple[float, float, float, float]
) -> Pixels:
    """Resamples the part `box` (left, top, right, bottom) to `size` (height, width)."""
    image = PillowImage.fromarray(pixels)
    resized = image.resize((size[1], size[0]), PillowImage.Resampling.BICUBIC, box=box)
    return np.asarray(resized)
