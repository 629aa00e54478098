"""What the head of an image file says, without decoding it.

A JPEG is walked marker by marker here (ITU-T T.81, annex B), as tolerantly as libjpeg does it: fill
bytes and junk before a marker are skipped. What the other types say comes from Pillow.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from PIL import Image, JpegImagePlugin, TiffImagePlugin
from PIL.ImageFile import ImageFile

from readers.errors import SampleError

Encoded: TypeAlias = bytes | memoryview

IMAGE_TYPES: tuple[str, ...] = (
    "unknown",
    "pixels",
    "jpeg",
    "png",
    "gif",
    "webp",
    "bmp",
    "tiff",
    "jp2",
    "avif",
    "heif",
    "yuv420",
)
"""Names of the types. A dataset stores a type as its position here: append only."""

SUFFIX_OF: Mapping[str, str] = MappingProxyType(
    {
        "unknown": "bin",
        "pixels": "npy",
        "jpeg": "jpg",
        "png": "png",
        "gif": "gif",
        "webp": "webp",
        "bmp": "bmp",
        "tiff": "tif",
        "jp2": "jp2",
        "avif": "avif",
        "heif": "heic",
        "yuv420": "yuv",
    }
)
"""Suffix by type, without the dot, for fields and files that are named by their content."""

IMAGE_SUFFIXES: frozenset[str] = frozenset(
    {
        ".jpg", ".jpeg", ".jpe", ".jif", ".jfif", ".mpo",
        ".png", ".apng", ".gif", ".webp", ".bmp", ".dib", ".tif", ".tiff",
        ".jp2", ".j2k", ".j2c", ".jpc", ".jpf", ".jpx",
        ".avif", ".avifs", ".heic", ".heics", ".heif", ".heifs", ".hif",
    }
)  # fmt: skip
"""Suffixes, in lower case, by which a file claims to be an image."""

_PILLOW_FORMATS = {
    "png": "PNG",
    "gif": "GIF",
    "webp": "WEBP",
    "bmp": "BMP",
    "tiff": "TIFF",
    "jp2": "JPEG2000",
    "avif": "AVIF",
    "heif": "HEIF",
}

_JPEG_START = b"\xff\xd8\xff"
_JPEG_END = b"\xff\xd9"
_JPEG_MARKER = re.compile(rb"\xff[\x01-\xfe]")
_MOST_MARKERS = 10_000
_LARGEST_SIDE = (1 << 31) - 1
_SCALABLE_FRAMES = frozenset((0xC0, 0xC1, 0xC2))
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_STANDALONE = frozenset({0x01, *range(0xD0, 0xD9)})
_MARKER_PREFIX = 0xFF
_EOI, _SOS, _DRI, _APP1 = 0xD9, 0xDA, 0xDD, 0xE1
_LENGTH_SIZE = 2
"""Bytes of a segment's length, which counts itself."""

_HEAD_SIZE = 32
_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
    (b"II+\0", "tiff"),
    (b"MM\0+", "tiff"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "jp2"),
    (b"\xff\x4f\xff\x51", "jp2"),
)
_BMP_HEAD_SIZES = frozenset({12, 16, 40, 52, 56, 64, 108, 124})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_HEIF_BRANDS = frozenset(
    {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"}
)

_EXIF_PREFIX = b"Exif\0\0"
_ORIENTATION_TAG = 0x0112
_SHORT, _LONG = 3, 4
_LAST_ORIENTATION = 8
_IFD_ENTRY_SIZE = 12


class ImageHeader(NamedTuple):
    """What the head of an image file says."""

    type: str
    """One of `IMAGE_TYPES`."""
    height: int
    """Rows as stored, before any turn."""
    width: int
    """Columns as stored, before any turn."""
    orientation: int
    """EXIF orientation, 1 to 8; 1 where there is none or it can't be read."""
    components: int
    """Channels: 1 gray, 2 gray with alpha, 3 colour, 4 colour with alpha or CMYK; a palette counts
    as colour."""
    scan: int = 0
    """Offset of a JPEG's first scan, where its coded pixels begin; 0 where there is none."""
    scalable: bool = False
    """Whether libjpeg may be asked for a fraction of its size: a JPEG of DCT coefficients in
    Huffman code. Asked of a lossless one, libjpeg-turbo crashes."""
    frame: int = 0
    """Offset of the content of a JPEG's frame header (SOF); 0 for other types."""
    restart_interval: int = 0
    """MCUs between a JPEG's restart markers; 0 where there are none."""


def image_type(data: Encoded) -> str:
    """Says what an image file is by its content; one of `IMAGE_TYPES`, `unknown` if no image."""
    if data[:3] == _JPEG_START:
        return "jpeg"
    head = bytes(data[:_HEAD_SIZE])
    for start, name in _STARTS:
        if head.startswith(start):
            return name
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "webp"
    if head.startswith(b"BM") and int.from_bytes(head[14:18], "little") in _BMP_HEAD_SIZES:
        return "bmp"
    if head[4:8] == b"ftyp":
        return _type_by_brands(data)
    return "unknown"


def read_header(data: Encoded) -> ImageHeader:
    """Reads the head of an image file of any of the known types.

    The orientation is that of the EXIF block's first directory, and of the first EXIF block where
    there are several. XMP is not consulted. An AVIF's own turn counts as its orientation.

    Raises:
        SampleError: It is no image, or its head is damaged. The text names no path.
    """
    kind = image_type(data)
    if kind == "jpeg":
        return _read_jpeg(data)
    if kind == "unknown":
        raise SampleError(_why_no_image(data))
    with pillow_faults(kind), open_lazily(data, kind) as image:
        width, height = image.size
        if isinstance(image, TiffImagePlugin.TiffImageFile):
            # What Pillow gives as the size is that after the turn, from Pillow 11 on.
            width = int(image.tag_v2[TiffImagePlugin.IMAGEWIDTH])
            height = int(image.tag_v2[TiffImagePlugin.IMAGELENGTH])
            orientation = _valid_orientation(image.tag_v2.get(_ORIENTATION_TAG))
        else:
            orientation = _orientation_of_block(image.info.get("exif"))
        components = {"P": 3, "PA": 4}.get(image.mode, len(image.getbands()))
    if not (0 < height <= _LARGEST_SIDE and 0 < width <= _LARGEST_SIDE):
        raise SampleError(f"{width} x {height} pixels are no size of an image")
    return ImageHeader(kind, height, width, orientation, components)


def find_cut(data: Encoded, header: ImageHeader) -> str | None:
    """Says cheaply whether an image file was cut short.

    A JPEG must have an end marker after the start of its first scan (which coded pixels can't
    contain, and the end of a thumbnail in the head is none), a PNG its end chunk, and a WebP the
    length that it states. What follows the end is no fault. Other types aren't looked at.

    Args:
        data: The file.
        header: What `read_header` said of it.

    Returns:
        What is missing; None if nothing.
    """
    if header.type == "jpeg":
        if not header.scan:
            return "cut short: a JPEG without coded pixels"
        if data[-2:] != _JPEG_END and bytes(data).rfind(_JPEG_END, header.scan) < 0:
            return f"cut short: no end marker in the JPEG's {len(data)} bytes"
    elif header.type == "png":
        if bytes(data).rfind(b"IEND") < 0:
            return f"cut short: no end chunk in the PNG's {len(data)} bytes"
    elif header.type == "webp":
        stated = int.from_bytes(data[4:8], "little") + 8
        if stated > len(data):
            return f"cut short: the WebP has {len(data)} of the {stated} bytes that it states"
    return None


def open_lazily(data: Encoded, kind: str) -> ImageFile:
    """Opens an image file with Pillow's decoder for its type, without decoding it.

    `PIL.Image.open` isn't used because it applies Pillow's process-wide pixel limit and warns; the
    limit of this package is an option of each call. To be called within `pillow_faults`.

    Args:
        data: The file.
        kind: Its type, as `image_type` says.

    Raises:
        SampleError: The installed Pillow doesn't know the type.
    """
    stream = io.BytesIO(data)
    if kind == "jpeg":
        return _JpegWithoutExif(stream)
    name = _PILLOW_FORMATS[kind]
    if name not in Image.OPEN:
        Image.init()
    if name not in Image.OPEN:
        raise SampleError(f"the installed Pillow can't read {kind}")
    factory, _ = Image.OPEN[name]
    return factory(stream, "")


@contextmanager
def pillow_faults(kind: str) -> Iterator[None]:
    """Turns what Pillow raises about a file of type `kind` into `SampleError`."""
    try:
        yield
    except SampleError:
        raise
    except Exception as error:
        # A damaged file makes Pillow's decoders raise whatever their parsing trips over: OSError,
        # SyntaxError, ValueError, KeyError, struct.error, zlib.error, MemoryError for tiles that
        # no image has, and warnings where the process made them errors.
        raise SampleError(f"Pillow can't read the {kind}: {reason_of(error)}") from error


def reason_of(error: Exception) -> str:
    """Gives the text of a library's error, or its name where it has none."""
    return str(error) or type(error).__name__


class _JpegWithoutExif(JpegImagePlugin.JpegImageFile):
    """A JPEG whose EXIF block isn't parsed: its faults would come out as warnings."""

    def getexif(self) -> Image.Exif:
        return Image.Exif()


def _type_by_brands(data: Encoded) -> str:
    size = int.from_bytes(data[:4], "big")
    box = bytes(data[8 : min(size, 512)])
    brands = {box[:4], *(box[at : at + 4] for at in range(8, len(box), 4))}
    if brands & _AVIF_BRANDS:
        return "avif"
    return "heif" if brands & _HEIF_BRANDS else "unknown"


def _why_no_image(data: Encoded) -> str:
    if not len(data):
        return "empty file"
    start = bytes(data[:16])
    text = repr(start)[1:] + ("…" if len(data) > len(start) else "")
    return f"no image: starts with {text}"


def _read_jpeg(data: Encoded) -> ImageHeader:
    frame: tuple[int, int, int] | None = None
    orientation = 0
    frame_start, scan, restart_interval = 0, 0, 0
    scalable = False
    try:
        for marker, start, end in _jpeg_segments(data):
            if marker == _SOS:
                scan = start
            elif marker in _JPEG_FRAMES:
                scalable = marker in _SCALABLE_FRAMES and (frame is None or scalable)
                frame = frame or _frame(data, start)
                frame_start = frame_start or start
            elif marker == _DRI:
                restart_interval = data[start] << 8 | data[start + 1]
            elif marker == _APP1 and not orientation:
                tiff = start + len(_EXIF_PREFIX)
                if data[start:tiff] == _EXIF_PREFIX:
                    orientation = _exif_orientation(data, tiff, end)
    except IndexError:
        if frame is None:
            raise SampleError(
                f"cut short: the JPEG's {len(data)} bytes end before its frame header"
            ) from None
    if frame is None:
        raise SampleError("JPEG without a frame header")
    height, width, components = frame
    return ImageHeader(
        "jpeg",
        height,
        width,
        orientation or 1,
        components,
        scan,
        scalable,
        frame_start,
        restart_interval,
    )


def _jpeg_segments(data: Encoded) -> Iterator[tuple[int, int, int]]:
    """Walks a JPEG as far as its first scan.

    Yields:
        Marker code, start and stated end of the segment's content.

    Raises:
        IndexError: The file ends within a segment.
        SampleError: A segment has an impossible length.
    """
    position = len(_JPEG_START) - 1
    for _ in range(_MOST_MARKERS):
        marker = data[position + 1]
        if data[position] != _MARKER_PREFIX or not 0 < marker < _MARKER_PREFIX:
            found = _JPEG_MARKER.search(data, position)
            if found is None:
                return
            position = found.start()
            marker = data[position + 1]
        position += 2
        if marker in _JPEG_STANDALONE:
            continue
        if marker == _EOI:
            return
        length = data[position] << 8 | data[position + 1]
        if length < _LENGTH_SIZE:
            raise SampleError(
                f"the JPEG's segment FF{marker:02X} at byte {position - 2} has the impossible "
                f"length {length}"
            )
        yield marker, position + _LENGTH_SIZE, position + length
        if marker == _SOS:
            return
        position += length
    raise SampleError(f"JPEG with more than {_MOST_MARKERS} markers before its first scan")


def _frame(data: Encoded, start: int) -> tuple[int, int, int]:
    """Reads height, width and number of components from a frame header's content."""
    height = data[start + 1] << 8 | data[start + 2]
    width = data[start + 3] << 8 | data[start + 4]
    components = data[start + 5]
    if not width:
        raise SampleError("JPEG with a width of 0 pixels")
    if not height:
        raise SampleError(
            "JPEG with the height left to a later marker (DNL), which decoders don't read"
        )
    return height, width, components


def _orientation_of_block(block: object) -> int:
    if not isinstance(block, bytes):
        return 1
    start = len(_EXIF_PREFIX) if block.startswith(_EXIF_PREFIX) else 0
    return _exif_orientation(block, start, len(block))


def _exif_orientation(data: Encoded, start: int, end: int) -> int:
    """Finds the orientation in the first directory of the TIFF structure in data[start:end].

    Source: Exif 2.32 (CIPA DC-008), 4.6.2 and table 4.
    """
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(bytes(data[start : start + 4]))
    end = min(end, len(data))
    if order is None or start + 8 > end:
        return 1
    directory = start + int(struct.unpack_from(order + "I", data, start + 4)[0])
    if directory + 2 > end:
        return 1
    (count,) = struct.unpack_from(order + "H", data, directory)
    first = directory + 2
    last = min(first + _IFD_ENTRY_SIZE * count, end - _IFD_ENTRY_SIZE + 1)
    entry = struct.Struct(order + "HHI")
    for position in range(first, last, _IFD_ENTRY_SIZE):
        tag, kind, values = entry.unpack_from(data, position)
        if tag == _ORIENTATION_TAG:
            if values != 1 or kind not in (_SHORT, _LONG):
                return 1
            width = "H" if kind == _SHORT else "I"
            value = int(struct.unpack_from(order + width, data, position + 8)[0])
            return _valid_orientation(value)
    return 1


def _valid_orientation(value: object) -> int:
    return value if isinstance(value, int) and 1 <= value <= _LAST_ORIENTATION else 1
