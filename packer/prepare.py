"""Takes one sample through the image policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import simplejpeg
from PIL import Image as PillowImage

from packer.image_policy import MAX_JPEG_SIDE, Decode, ImagePolicy, Keep, Reencode, Region, Resize
from packer.protocols import Record
from packer.recoding import load_recode
from readers.checksum import digest
from readers.decode import Decoded, decode_stored, orient
from readers.errors import NotRecodableError, SampleError
from readers.header import Encoded, ImageHeader, find_cut, image_type, read_header
from readers.sample import Image, Pixels, Sample

_QUARTER_TURNED = 5
_GRAY = (1, 2)
_SCALED_DECODE_GAP = 2
"""How many times the result's size a JPEG is decoded at, at least, before it is resized. At 2 the
result is close to the one from full size, as Pillow's manual says of `reducing_gap`."""


def prepare(
    sample: Sample, policy: ImagePolicy, *, max_pixels: int | None, keep_bad: bool
) -> Record:
    """Makes the record of one sample.

    Pure, and safe from several threads at once. Where the sample's image is pixels already, `Keep`
    passes them on and the other policies work on them.

    Args:
        sample: What the source gave.
        policy: What to do to the image.
        max_pixels: Limit of height x width of what is decoded or made; None for no limit. A file
            that is stored undecoded may be of any size.
        keep_bad: Whether a file that can't be used is stored untouched, marked
            `bad`, with the reason in the record's `note` and 0 for a height and width that can't
            be read. Has no effect on `Decode`.

    Raises:
        SampleError: The image can't be used. The message begins with the sample's path.
    """
    try:
        if isinstance(policy, Keep):
            return _keep(sample, policy, max_pixels)
        if isinstance(policy, Region):
            return _region(sample, policy, max_pixels)
        if isinstance(policy, Resize):
            return _resize(sample, policy, max_pixels)
        if isinstance(policy, Reencode):
            return _reencode(sample, policy, max_pixels)
        return _decode(sample, policy, max_pixels)
    except SampleError as error:
        if keep_bad and not isinstance(policy, Decode) and not isinstance(sample.image, np.ndarray):
            return _bad_record(sample, sample.image, error.message)
        raise SampleError(
            f"{sample.path}: {error.message}", path=sample.path, key=sample.key
        ) from error


def _keep(sample: Sample, policy: Keep, max_pixels: int | None) -> Record:
    image = sample.image
    if isinstance(image, np.ndarray):
        return _pixel_record(sample, image, None, None)
    header = read_header(image)
    if policy.check == "decode":
        note = decode_stored(image, header, max_pixels=max_pixels).note
        return replace(_file_record(sample, image, header, note), segments=sample.segments)
    return replace(_undecoded_record(sample, image, header), segments=sample.segments)


def _region(sample: Sample, policy: Region, max_pixels: int | None) -> Record:
    image = sample.image
    if isinstance(image, np.ndarray):
        raise SampleError("pixels can't be rewritten as a JPEG without loss")
    header = read_header(image)
    record = _undecoded_record(sample, image, header)
    if header.type != "jpeg":
        return record
    try:
        everything = policy.metadata == "keep"
        recoded = load_recode()(image, max_pixels=max_pixels, metadata=everything)
    except NotRecodableError as error:
        return replace(record, note=f"not rewritten, kept as it is: {error.message}")
    return replace(
        record,
        image=recoded.jpeg,
        checksum=digest(recoded.jpeg),
        segments=recoded.segments,
    )


def _resize(sample: Sample, policy: Resize, max_pixels: int | None) -> Record:
    image = sample.image
    header = _header(image)
    upright = _upright(header.height, header.width, header.orientation)
    size = _resized_size(upright, policy)
    if (
        size == upright
        and header.type == "jpeg"
        and header.orientation == 1
        and not isinstance(image, np.ndarray)
    ):
        note = decode_stored(image, header, max_pixels=max_pixels).note
        return _file_record(sample, image, header, note)
    if max(size) > MAX_JPEG_SIDE or (max_pixels is not None and size[0] * size[1] > max_pixels):
        raise SampleError(
            f"{upright[1]} x {upright[0]} pixels would be enlarged to {size[1]} x {size[0]}, over "
            f"the limit of {MAX_JPEG_SIDE} a side and {max_pixels} in all (max_pixels)"
        )
    decoded = _decoded(image, header, max_pixels, size)
    return _jpeg_record(sample, _scaled(decoded, size), header, decoded, policy)


def _reencode(sample: Sample, policy: Reencode, max_pixels: int | None) -> Record:
    header = _header(sample.image)
    decoded = _decoded(sample.image, header, max_pixels, None)
    pixels = orient(decoded.pixels, decoded.orientation)
    return _jpeg_record(sample, pixels, header, decoded, policy)


def _decode(sample: Sample, policy: Decode, max_pixels: int | None) -> Record:
    header = _header(sample.image)
    upright = _upright(header.height, header.width, header.orientation)
    if policy.size is None:
        decoded = _decoded(sample.image, header, max_pixels, None)
        pixels = orient(decoded.pixels, decoded.orientation)
    elif policy.fit == "crop":
        covering = max(_sizes_in_proportion(upright, policy.size))
        decoded = _decoded(sample.image, header, max_pixels, covering)
        pixels = _cropped(decoded, policy.size)
    else:
        fitting = min(_sizes_in_proportion(upright, policy.size))
        decoded = _decoded(sample.image, header, max_pixels, fitting)
        pixels = _padded(_scaled(decoded, fitting), policy.size)
    return _pixel_record(sample, pixels, decoded.decoder, decoded.note)


def _header(image: Image) -> ImageHeader:
    if isinstance(image, np.ndarray):
        height, width, components = image.shape
        return ImageHeader("pixels", height, width, 1, components)
    return read_header(image)


def _decoded(
    image: Image, header: ImageHeader, max_pixels: int | None, upright_size: tuple[int, int] | None
) -> Decoded:
    """Makes pixels of an image, at least `_SCALED_DECODE_GAP` times as large as a given size."""
    if isinstance(image, np.ndarray):
        return Decoded(image, 1, None, None)
    at_least = None
    if upright_size is not None:
        height, width = _upright(*upright_size, header.orientation)
        at_least = height * _SCALED_DECODE_GAP, width * _SCALED_DECODE_GAP
    return decode_stored(image, header, max_pixels=max_pixels, at_least=at_least)


def _upright(height: int, width: int, orientation: int) -> tuple[int, int]:
    """Gives the size after the turn, and of that the size before it."""
    return (width, height) if orientation >= _QUARTER_TURNED else (height, width)


def _resized_size(upright: tuple[int, int], policy: Resize) -> tuple[int, int]:
    side = min(upright) if policy.by == "shorter" else max(upright)
    if side <= policy.side and not policy.enlarge:
        return upright
    height, width = upright
    return _in_proportion(height, policy.side, side), _in_proportion(width, policy.side, side)


def _sizes_in_proportion(
    upright: tuple[int, int], size: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Scales a size to the height and to the width of another.

    The larger of the two covers the other, the smaller fits into it; tuples compare in that order.
    """
    to_height = size[0], _in_proportion(upright[1], size[0], upright[0])
    to_width = _in_proportion(upright[0], size[1], upright[1]), size[1]
    return to_height, to_width


def _in_proportion(length: int, target: int, reference: int) -> int:
    """Computes length * target / reference, rounded half up, at least 1."""
    return max(1, (2 * length * target + reference) // (2 * reference))


def _scaled(decoded: Decoded, size: tuple[int, int]) -> Pixels:
    """Scales all of an image to an upright size and turns it."""
    stored = _upright(*size, decoded.orientation)
    pixels = decoded.pixels
    if pixels.shape[:2] != stored:
        pixels = _resampled(pixels, stored, (0, 0, pixels.shape[1], pixels.shape[0]))
    return orient(pixels, decoded.orientation)


def _cropped(decoded: Decoded, size: tuple[int, int]) -> Pixels:
    """Scales the middle of an image that has the shape of an upright size, and turns it."""
    height, width = _upright(*size, decoded.orientation)
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


def _undecoded_record(sample: Sample, image: Encoded, header: ImageHeader) -> Record:
    if (cut := find_cut(image, header)) is not None:
        raise SampleError(cut)
    return _file_record(sample, image, header, None)


def _bad_record(sample: Sample, image: Encoded, reason: str) -> Record:
    try:
        header = read_header(image)
    except SampleError:
        header = ImageHeader(image_type(image), 0, 0, 1, 0)
    return replace(_file_record(sample, image, header, reason), bad=True)


def _file_record(sample: Sample, image: Encoded, header: ImageHeader, note: str | None) -> Record:
    return Record(
        key=sample.key,
        path=sample.path,
        label=sample.label,
        extra=sample.extra,
        image=image,
        type=header.type,
        height=header.height,
        width=header.width,
        orientation=header.orientation,
        checksum=digest(image),
        note=note,
    )


def _jpeg_record(
    sample: Sample,
    pixels: Pixels,
    header: ImageHeader,
    decoded: Decoded,
    policy: Resize | Reencode,
) -> Record:
    subsampling = "gray" if header.components in _GRAY else policy.subsampling
    try:
        image: bytes = simplejpeg.encode_jpeg(
            pixels, quality=policy.quality, colorsubsampling=subsampling
        )
    except ValueError as error:
        raise SampleError(
            f"{pixels.shape[1]} x {pixels.shape[0]} pixels can't be made a JPEG: {error}"
        ) from error
    return Record(
        key=sample.key,
        path=sample.path,
        label=sample.label,
        extra=sample.extra,
        image=image,
        type="jpeg",
        height=pixels.shape[0],
        width=pixels.shape[1],
        orientation=1,
        checksum=digest(image),
        decoder=decoded.decoder,
        note=decoded.note,
    )


def _pixel_record(sample: Sample, pixels: Pixels, decoder: str | None, note: str | None) -> Record:
    image = np.ascontiguousarray(pixels).data.cast("B")
    return Record(
        key=sample.key,
        path=sample.path,
        label=sample.label,
        extra=sample.extra,
        image=image,
        type="pixels",
        height=pixels.shape[0],
        width=pixels.shape[1],
        orientation=1,
        checksum=digest(image),
        decoder=decoder,
        note=note,
    )
