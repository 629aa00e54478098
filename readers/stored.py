"""Makes pixels of an encoded image as it is stored, and turns them.

The rule for the turn that a camera notes in EXIF: stored bytes are never turned, and whenever
pixels are made of them, the turn is applied.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import simplejpeg
from PIL.Image import Image as PillowImage

from readers.errors import SampleError
from readers.header import (
    Encoded,
    ImageHeader,
    find_cut,
    open_lazily,
    pillow_faults,
    reason_of,
)
from readers.rectangle import QUARTER_TURNED
from readers.sample import Pixels

MAX_PIXELS = 178_956_970
"""Pixels above which an image isn't decoded unless asked: 2**29 bytes of RGB, and the number at
which Pillow raises `DecompressionBombError`."""

_SCALES = (8, 4, 2)
PIXEL = np.dtype("V3")
"""Three channels as one: moving whole pixels takes half the time of moving their channels."""
_DEEP_GRAY = frozenset({"I;16", "I;16L", "I;16B", "I;16N"})


@dataclass(frozen=True, slots=True)
class Decoded:
    """The pixels of an image and how they were made."""

    pixels: Pixels
    """RGB, `uint8`, shape (height, width, 3), C-contiguous, not turned."""
    orientation: int
    """EXIF orientation that `orient` has yet to apply, 1 to 8."""
    decoder: str | None
    """`simplejpeg` or `pillow`; None for an image that was pixels already."""
    note: str | None
    """Why simplejpeg, which is strict, refused a JPEG that Pillow decoded; else None."""


def decode_stored(
    data: Encoded,
    header: ImageHeader,
    *,
    max_pixels: int | None = MAX_PIXELS,
    at_least: tuple[int, int] | None = None,
) -> Decoded:
    """Makes pixels of an encoded image, not yet turned, and says how.

    Args:
        data: The file.
        header: What `read_header` said of it.
        max_pixels: As for `readers.decode.decode`.
        at_least: Height and width, before the turn, of which the pixels are needed: a JPEG may
            come out at a fraction of its size, see `choose_scale`.

    Raises:
        SampleError: As for `readers.decode.decode`.
    """
    check_limit(header.height, header.width, max_pixels)
    if header.type != "jpeg":
        return _decode_with_pillow(data, header, max_pixels, None)
    min_height, min_width = 0, 0
    if at_least is not None and header.scalable:
        scale = choose_scale(header.height, header.width, at_least)
        min_height, min_width = -(-header.height // scale), -(-header.width // scale)
    try:
        pixels: Pixels = simplejpeg.decode_jpeg(data, min_height=min_height, min_width=min_width)
    except ValueError as error:
        return _decode_with_pillow(data, header, max_pixels, reason_of(error))
    return Decoded(pixels, header.orientation, "simplejpeg", None)


def orient(pixels: Pixels, orientation: int) -> Pixels:
    """Turns pixels upright.

    Args:
        pixels: `uint8`, shape (height, width, 3).
        orientation: EXIF orientation, 1 to 8 (Exif 2.32, table 6).

    Returns:
        The same array for 1, else a C-contiguous copy, of shape (width, height, 3) for 5 to 8.
    """
    if orientation == 1:
        return pixels
    view = np.ascontiguousarray(pixels).view(PIXEL)[:, :, 0]
    if orientation >= QUARTER_TURNED:
        view = view.T
    if orientation in (3, 4, 7, 8):
        view = view[::-1]
    if orientation in (2, 3, 6, 7):
        view = view[:, ::-1]
    turned: Pixels = np.ascontiguousarray(view).view(np.uint8)
    return turned.reshape(*view.shape, 3)


def choose_scale(height: int, width: int, at_least: tuple[int, int]) -> int:
    """Chooses at which fraction of its size to decode a JPEG that may be (`ImageHeader.scalable`).

    Args:
        height: In pixels.
        width: Likewise.
        at_least: Height and width that are needed.

    Returns:
        2, 4 or 8 for a half, a quarter or an eighth, the last that is still as large as needed in
        both directions, or else 1. libjpeg's other eighths are slower than the full size.
    """
    for scale in _SCALES:
        if -(-height // scale) >= at_least[0] and -(-width // scale) >= at_least[1]:
            return scale
    return 1


def check_limit(height: int, width: int, max_pixels: int | None) -> None:
    """Holds the size of a picture against the limit.

    Raises:
        SampleError: It is larger.
    """
    if max_pixels is not None and height * width > max_pixels:
        raise SampleError(
            f"{width} x {height} = {width * height} pixels, over the limit of {max_pixels}: "
            "raise max_pixels (--max-pixels) if it is meant to be so large"
        )


def _decode_with_pillow(
    data: Encoded, header: ImageHeader, max_pixels: int | None, refusal: str | None
) -> Decoded:
    try:
        pixels = _pillow_pixels(data, header, max_pixels)
    except SampleError as error:
        if refusal is None:
            raise
        raise SampleError(f"{error.message}; simplejpeg: {refusal}") from error
    # Pillow turns a TIFF while it decodes it.
    orientation = 1 if header.type == "tiff" else header.orientation
    return Decoded(pixels, orientation, "pillow", refusal)


def _pillow_pixels(data: Encoded, header: ImageHeader, max_pixels: int | None) -> Pixels:
    # Pillow would fill up a cut image if the process has set LOAD_TRUNCATED_IMAGES.
    if (cut := find_cut(data, header)) is not None:
        raise SampleError(cut)
    with pillow_faults(header.type), open_lazily(data, header.type) as image:
        check_limit(image.height, image.width, max_pixels)
        return _to_rgb(image)


def _to_rgb(image: PillowImage) -> Pixels:
    # Pillow before 11.3 has mode I for 16-bit gray PNG; its conversions clip both modes.
    if image.mode in _DEEP_GRAY or (image.mode == "I" and image.format == "PNG"):
        gray = (np.asarray(image) >> 8).astype(np.uint8)
        return np.repeat(gray[:, :, np.newaxis], 3, axis=2)
    if image.mode in ("I", "F"):
        raise SampleError("32-bit samples, for which nothing says what is black and what is white")
    image.load()
    # Converting a palette with transparency warns, though alpha is dropped on purpose.
    image.info.pop("transparency", None)
    return np.array(image.convert("RGB"))
