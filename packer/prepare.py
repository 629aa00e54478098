"""Takes one sample through the image policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import simplejpeg

from packer.image_policy import MAX_JPEG_SIDE, Decode, ImagePolicy, Keep, Reencode, Region, Resize
from packer.protocols import Record
from packer.recoding import load_recode
from readers.checksum import digest
from readers.decode import Decoded, decode_stored, orient
from readers.errors import NotRecodableError, SampleError
from readers.fitting import decoded_for, fitted, header_of, in_proportion, scaled
from readers.header import Encoded, ImageHeader, find_cut, image_type, read_header
from readers.rectangle import turn_size
from readers.sample import Pixels, Sample, as_rgb, bytes_of, is_encoded
from readers.yuv import Yuv420, yuv_of

_GRAY = (1, 2)


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
        if keep_bad and not isinstance(policy, Decode) and is_encoded(sample.image):
            return _bad_record(sample, sample.image, error.message)
        raise SampleError(
            f"{sample.path}: {error.message}", path=sample.path, key=sample.key
        ) from error


def _keep(sample: Sample, policy: Keep, max_pixels: int | None) -> Record:
    image = sample.image
    if not is_encoded(image):
        return _pixel_record(sample, image, None, None)
    header = read_header(image)
    if policy.check == "decode":
        note = decode_stored(image, header, max_pixels=max_pixels).note
        return replace(_file_record(sample, image, header, note), segments=sample.segments)
    return replace(_undecoded_record(sample, image, header), segments=sample.segments)


def _region(sample: Sample, policy: Region, max_pixels: int | None) -> Record:
    image = sample.image
    if not is_encoded(image):
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
    image = as_rgb(sample.image)
    header = header_of(image)
    upright = turn_size(header.height, header.width, header.orientation)
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
    decoded = decoded_for(image, header, size, max_pixels=max_pixels)
    return _jpeg_record(sample, scaled(decoded, size), header, decoded, policy)


def _reencode(sample: Sample, policy: Reencode, max_pixels: int | None) -> Record:
    image = as_rgb(sample.image)
    header = header_of(image)
    decoded = decoded_for(image, header, None, max_pixels=max_pixels)
    pixels = orient(decoded.pixels, decoded.orientation)
    return _jpeg_record(sample, pixels, header, decoded, policy)


def _decode(sample: Sample, policy: Decode, max_pixels: int | None) -> Record:
    image = as_rgb(sample.image)
    decoded = fitted(image, policy.size, policy.fit, max_pixels=max_pixels)
    pixels = decoded.pixels if policy.color == "rgb" else yuv_of(decoded.pixels)
    return _pixel_record(sample, pixels, decoded.decoder, decoded.note)


def _resized_size(upright: tuple[int, int], policy: Resize) -> tuple[int, int]:
    side = min(upright) if policy.by == "shorter" else max(upright)
    if side <= policy.side and not policy.enlarge:
        return upright
    height, width = upright
    return in_proportion(height, policy.side, side), in_proportion(width, policy.side, side)


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


def _pixel_record(
    sample: Sample, pixels: Pixels | Yuv420, decoder: str | None, note: str | None
) -> Record:
    image = bytes_of(pixels)
    if isinstance(pixels, Yuv420):
        kind, height, width = "yuv420", pixels.height, pixels.width
    else:
        kind, (height, width) = "pixels", pixels.shape[:2]
    return Record(
        key=sample.key,
        path=sample.path,
        label=sample.label,
        extra=sample.extra,
        image=image,
        type=kind,
        height=height,
        width=width,
        orientation=1,
        checksum=digest(image),
        decoder=decoder,
        note=note,
    )
