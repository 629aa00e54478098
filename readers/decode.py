"""Makes upright pixels of an image, or of a part of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import simplejpeg
from numpy.typing import NDArray

from readers.errors import CorruptDatasetError
from readers.header import Encoded, ImageHeader, read_header
from readers.rectangle import Box, Rectangle, check_inside, turn, turn_back, turn_size
from readers.region import cut_out, find_grid
from readers.sample import Image, Pixels, Sample
from readers.span import decoding
from readers.stored import (
    MAX_PIXELS,
    Decoded,
    check_limit,
    choose_scale,
    decode_stored,
    orient,
)
from readers.yuv import Yuv420

__all__ = [
    "MAX_PIXELS",
    "Decoded",
    "EncodedPicture",
    "Part",
    "Picture",
    "PixelPicture",
    "PlanarPicture",
    "decode",
    "decode_stored",
    "open_picture",
    "orient",
]


def decode(
    image: Image | Sample,
    *,
    region: tuple[int, int, int, int] | None = None,
    at_least: tuple[int, int] | None = None,
    max_pixels: int | None = MAX_PIXELS,
) -> Pixels:
    """Makes upright RGB pixels of an image, or of a region of it.

    JPEG files go through libjpeg-turbo in strict mode, and through Pillow where that refuses;
    everything else goes through Pillow. Gray gets three equal channels, CMYK and YCCK become RGB
    without a colour profile, alpha is dropped, 16-bit samples keep their high byte, and of an
    animation or a file of several pages the first picture is taken.

    A region has the very pixels that it has in the whole picture. Of a JPEG with restart markers
    whose interval divides the row of MCUs (`packer convert --image region` makes such, and
    `jpegtran -restart 1`), little more than the region is decoded, and damage elsewhere in the file
    may go unnoticed. Everything else is decoded whole, and cut.

    Args:
        image: An encoded image; pixels pass through as they are. A sample stands for its image, and
            what it knows of its segments saves searching for them.
        region: Top, left, height and width in the upright picture, in pixels; None for all of it.
        at_least: Height and width of which the region is needed. A JPEG may then come out at 1/2,
            1/4 or 1/8 of its size (libjpeg's scaled decode), the smallest that is no smaller than
            this in either direction; a region of it is rounded outward to whole pixels of the
            picture at that scale. Anything else comes out at full size.
        max_pixels: Limit of height x width of the whole picture, checked before memory for pixels
            is taken; None for no limit. In its decoders for GIF, TIFF and WebP Pillow consults its
            own `PIL.Image.MAX_IMAGE_PIXELS` as well, and refuses them above twice that number.

    Returns:
        Pixels, `uint8`, shape (height, width, 3), RGB, turned as EXIF says, C-contiguous: of an
        image that is pixels already a copy, but for a region of whole rows.

    Raises:
        OptionError: The region reaches beyond the picture, or is empty.
        SampleError: It is no image, damaged, cut short, of a kind that no decoder here reads, or
            larger than `max_pixels`.
        CorruptDatasetError: The sample's segments aren't those of its image.
    """
    if region is None and isinstance(image, np.ndarray):
        return image
    with decoding:
        part = open_picture(image).decode(region, at_least=at_least, max_pixels=max_pixels)
        return np.ascontiguousarray(part.pixels)


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a picture, upright."""

    pixels: Pixels
    """RGB, `uint8`, shape (height, width, 3); may be a view into more."""
    box: Box
    """Where in the pixels that lies which was asked for: at a scale, its borders may fall within
    the outermost pixels."""


class PixelPicture:
    """A picture that was decoded before.

    Args:
        pixels: `uint8`, shape (height, width, 3).
    """

    def __init__(self, pixels: Pixels) -> None:
        self._pixels = pixels
        self.height, self.width = pixels.shape[:2]

    def decode(
        self,
        region: tuple[int, int, int, int] | None = None,
        *,
        at_least: tuple[int, int] | None = None,  # noqa: ARG002 - there is one scale
        max_pixels: int | None = MAX_PIXELS,  # noqa: ARG002 - the memory is taken already
    ) -> Part:
        """Gives a view of a region.

        Raises:
            OptionError: As for `readers.decode.decode`.
        """
        return _crop(self._pixels, region or (0, 0, self.height, self.width))


class PlanarPicture:
    """A picture that was decoded to planes.

    Args:
        planes: Its pixels.
    """

    def __init__(self, planes: Yuv420) -> None:
        self._planes = planes
        self.height, self.width = planes.height, planes.width

    def decode(
        self,
        region: tuple[int, int, int, int] | None = None,
        *,
        at_least: tuple[int, int] | None = None,  # noqa: ARG002 - there is one scale
        max_pixels: int | None = MAX_PIXELS,  # noqa: ARG002 - the memory is taken already
    ) -> Part:
        """Makes RGB of a region.

        Raises:
            OptionError: As for `readers.decode.decode`.
        """
        whole = (0, 0, self.height, self.width)
        part = check_inside(region or whole, self.height, self.width)
        return Part(self._planes.to_rgb(part), Box(0, 0, part.height, part.width))


class EncodedPicture:
    """An encoded picture of which only the head has been read.

    Args:
        data: The file.
        lengths: Of its segments, see `Sample.segments`.
        key: Of the sample, for errors.

    Attributes:
        height: Upright, in pixels.
        width: Likewise.

    Raises:
        SampleError: It is no image, or its head is damaged.
    """

    def __init__(
        self, data: Encoded, lengths: NDArray[np.uint16] | None = None, key: str | None = None
    ) -> None:
        self._data = data
        self._lengths = lengths
        self._key = key
        self._header = header = read_header(data)
        self.height, self.width = turn_size(header.height, header.width, header.orientation)

    def decode(
        self,
        region: tuple[int, int, int, int] | None = None,
        *,
        at_least: tuple[int, int] | None = None,
        max_pixels: int | None = MAX_PIXELS,
    ) -> Part:
        """Makes pixels of a region; arguments and errors are those of `readers.decode.decode`."""
        header = self._header
        check_limit(header.height, header.width, max_pixels)
        wanted = check_inside(region or (0, 0, self.height, self.width), self.height, self.width)
        if header.type != "jpeg":
            decoded = decode_stored(self._data, header, max_pixels=max_pixels)
            return _crop(orient(decoded.pixels, decoded.orientation), wanted)
        orientation = header.orientation
        stored = turn_back(wanted, self.height, self.width, orientation)
        scale = 1
        if at_least is not None and header.scalable:
            scale = choose_scale(stored.height, stored.width, turn_size(*at_least, orientation))
        part = self._cut(stored, scale)
        if part is None:
            part = _decode_whole(self._data, header, stored, scale, max_pixels)
        if orientation == 1:
            return part
        height, width = part.pixels.shape[:2]
        box = turn(part.box, height, width, orientation)
        return Part(orient(part.pixels, orientation), box)

    def _cut(self, wanted: Rectangle, scale: int) -> Part | None:
        """Decodes just what a part needs; None if it takes all of it, or if it can't be done."""
        data, header = self._data, self._header
        if (wanted.height, wanted.width) == (header.height, header.width):
            return None
        try:
            grid = find_grid(data, header, self._lengths)
        except CorruptDatasetError as error:
            message = f"sample {self._key!r}: {error.message}"
            raise CorruptDatasetError(message, key=self._key) from error
        if grid is None or (cut := cut_out(data, header, grid, wanted, scale)) is None:
            return None
        place = cut.place
        height, width = -(-place.height // scale), -(-place.width // scale)
        try:
            pixels = simplejpeg.decode_jpeg(cut.data, min_height=height, min_width=width)
        except ValueError:
            return None  # decoding the whole tells what is wrong, and may still do
        return _crop_scaled(pixels, place, wanted, scale)


Picture: TypeAlias = EncodedPicture | PixelPicture | PlanarPicture


def open_picture(image: Image | Sample) -> Picture:
    """Reads as much of an image as tells its size.

    Raises:
        SampleError: It is no image, or its head is damaged.
    """
    stored = image.image if isinstance(image, Sample) else image
    if isinstance(stored, Yuv420):
        return PlanarPicture(stored)
    if isinstance(stored, np.ndarray):
        return PixelPicture(stored)
    if isinstance(image, Sample):
        return EncodedPicture(stored, image.segments, image.key)
    return EncodedPicture(stored)


def _decode_whole(
    data: Encoded, header: ImageHeader, wanted: Rectangle, scale: int, max_pixels: int | None
) -> Part:
    height, width = -(-header.height // scale), -(-header.width // scale)
    decoded = decode_stored(data, header, max_pixels=max_pixels, at_least=(height, width))
    if decoded.decoder == "pillow":
        scale = 1
    return _crop_scaled(decoded.pixels, Rectangle(0, 0, header.height, header.width), wanted, scale)


def _crop(pixels: Pixels, region: tuple[int, int, int, int]) -> Part:
    top, left, height, width = check_inside(region, *pixels.shape[:2])
    return Part(pixels[top : top + height, left : left + width], Box(0, 0, height, width))


def _crop_scaled(pixels: Pixels, place: Rectangle, wanted: Rectangle, scale: int) -> Part:
    """Takes a part out of pixels that show a larger part at a scale.

    Args:
        pixels: Those of `place`.
        place: In the whole picture; its corner is a multiple of the scale.
        wanted: In the whole picture, within `place`.
        scale: Pixels of the picture, down and across, that became one.
    """
    down, across = wanted.top - place.top, wanted.left - place.left
    top, left = down // scale, across // scale
    bottom, right = -(-(down + wanted.height) // scale), -(-(across + wanted.width) // scale)
    box = Box(
        down / scale - top, across / scale - left, wanted.height / scale, wanted.width / scale
    )
    return Part(pixels[top:bottom, left:right], box)
