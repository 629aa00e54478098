from __future__ import annotations

import io
import struct

import numpy as np
import pytest
import simplejpeg
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from readers.errors import SampleError
from readers.header import (
    IMAGE_SUFFIXES,
    IMAGE_TYPES,
    SUFFIX_OF,
    ImageHeader,
    find_cut,
    image_type,
    read_header,
)

HEIGHT, WIDTH = 24, 40
SAVED_TYPES = {
    "png": "PNG",
    "gif": "GIF",
    "webp": "WEBP",
    "bmp": "BMP",
    "tiff": "TIFF",
    "jp2": "JPEG2000",
    "avif": "AVIF",
}


def picture() -> Image.Image:
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    channels = (rows * 9, columns * 5, rows * 3 + columns * 2)
    return Image.fromarray(np.stack(channels, axis=2).astype(np.uint8))


def has_avif() -> bool:
    Image.init()
    return "AVIF" in Image.SAVE


def saved(pillow_format: str, mode: str = "RGB", exif: bytes = b"") -> bytes:
    if pillow_format == "AVIF" and not has_avif():
        pytest.skip("this Pillow has no AVIF")
    stream = io.BytesIO()
    options = {"exif": exif} if exif else {}
    picture().convert(mode).save(stream, pillow_format, **options)
    return stream.getvalue()


def jpeg() -> bytes:
    encoded: bytes = simplejpeg.encode_jpeg(np.array(picture()), colorsubsampling="420")
    return encoded


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def with_segments(*segments: bytes) -> bytes:
    whole = jpeg()
    return whole[:2] + b"".join(segments) + whole[2:]


def exif(
    value: int, *, order: str = "<", kind: int = 3, values: int = 1, directory: int = 8
) -> bytes:
    mark = {"<": b"II*\0", ">": b"MM\0*"}[order]
    number = struct.pack(order + ("I" if kind == 4 else "H"), value).ljust(4, b"\0")
    return b"".join(
        (
            b"Exif\0\0",
            mark,
            struct.pack(order + "I", directory),
            struct.pack(order + "H", 2),
            struct.pack(order + "HHII", 0x010F, 2, 1, 0),
            struct.pack(order + "HHI", 0x0112, kind, values) + number,
            struct.pack(order + "I", 0),
        )
    )


def without_data_after(marker: int) -> bytes:
    whole = jpeg()
    return whole[: whole.index(bytes((0xFF, marker)))]


def frame_patched(offset: int, value: bytes) -> bytes:
    whole = bytearray(jpeg())
    start = whole.index(b"\xff\xc0") + 4 + offset
    whole[start : start + len(value)] = value
    return bytes(whole)


def is_reported(data: bytes) -> bool:
    try:
        return find_cut(data, read_header(data)) is not None
    except SampleError:
        return True


def test_types_keep_their_numbers_on_disk() -> None:
    first = [
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
    ]
    assert list(IMAGE_TYPES[: len(first)]) == first
    assert set(SUFFIX_OF) == set(IMAGE_TYPES)
    assert {"." + SUFFIX_OF[name] for name in first[2:-1]} <= IMAGE_SUFFIXES


@pytest.mark.parametrize("name", SAVED_TYPES)
def test_reads_the_head_of_every_type(name: str) -> None:
    data = saved(SAVED_TYPES[name])
    assert image_type(data) == name
    assert read_header(data) == ImageHeader(name, HEIGHT, WIDTH, 1, 3)
    assert read_header(memoryview(data)) == read_header(data)
    assert find_cut(data, read_header(data)) is None


def test_reads_the_head_of_a_jpeg() -> None:
    data = jpeg()
    header = read_header(data)
    scan = data.index(b"\xff\xda") + 4
    frame = data.index(b"\xff\xc0") + 4
    assert header == ImageHeader("jpeg", HEIGHT, WIDTH, 1, 3, scan, scalable=True, frame=frame)
    assert read_header(memoryview(data)) == header
    assert find_cut(memoryview(data), header) is None


@pytest.mark.parametrize(
    ("pillow_format", "mode", "components"),
    [
        ("JPEG", "L", 1),
        ("JPEG", "CMYK", 4),
        ("PNG", "1", 1),
        ("PNG", "I;16", 1),
        ("PNG", "LA", 2),
        ("PNG", "P", 3),
        ("PNG", "RGBA", 4),
        ("GIF", "P", 3),
    ],
)
def test_counts_components(pillow_format: str, mode: str, components: int) -> None:
    if mode == "I;16":
        stream = io.BytesIO()
        Image.fromarray(np.zeros((HEIGHT, WIDTH), np.uint16)).save(stream, "PNG")
        data = stream.getvalue()
    else:
        data = saved(pillow_format, mode)
    assert read_header(data).components == components


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8",
        b"\xff\xd8\x00\x10JFIF",
        b"BM is how this text begins, and no bitmap",
        b"RIFF\0\0\0\0WAVEfmt ",
        b"\0\0\0\x18ftypisom\0\0\0\0isommp42",
        b"\xef\xbb\xbf" + jpeg(),
    ],
)
def test_what_is_no_image_is_unknown_and_reported(data: bytes) -> None:
    assert image_type(data) == "unknown"
    with pytest.raises(SampleError, match="empty file" if not data else "no image: starts with"):
        read_header(data)


def test_heif_is_told_from_avif_and_reported() -> None:
    heic = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(64)
    assert image_type(heic) == "heif"
    assert image_type(heic.replace(b"ftypheic", b"ftypmif1").replace(b"heic", b"avif")) == "avif"
    with pytest.raises(SampleError, match="can't read"):
        read_header(heic)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", [3, 4])
@pytest.mark.parametrize("value", range(1, 9))
def test_reads_orientation_in_both_byte_orders(value: int, order: str, kind: int) -> None:
    data = with_segments(segment(0xE1, exif(value, order=order, kind=kind)))
    header = read_header(data)
    assert (header.orientation, header.height, header.width) == (value, HEIGHT, WIDTH)


@pytest.mark.parametrize("pillow_format", ["PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("value", [3, 6])
def test_reads_orientation_of_other_types(pillow_format: str, value: int) -> None:
    block = Image.Exif()
    block[0x0112] = value
    header = read_header(saved(pillow_format, exif=block.tobytes()))
    assert (header.orientation, header.height, header.width) == (value, HEIGHT, WIDTH)


@pytest.mark.parametrize(
    "block",
    [
        exif(0),
        exif(9),
        exif(6, kind=2, values=6),
        exif(6, values=0),
        exif(6, directory=0xFFFFFFFF),
        exif(6, directory=60),
        exif(6)[:20],
        exif(6)[:34],
        exif(6).replace(b"II*\0", b"II+\0"),
        exif(6).replace(b"II*\0", b"\xff\xff\xff\xff"),
        exif(6).replace(b"Exif\0\0", b"Exif\0"),
        b"Exif\0\0",
        b"http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation='6'/>",
    ],
)
def test_unreadable_orientation_is_1(block: bytes) -> None:
    assert read_header(with_segments(segment(0xE1, block))).orientation == 1


def test_a_directory_of_a_hostile_length_ends_with_its_segment() -> None:
    block = bytearray(exif(7))
    block[14:16] = b"\xff\xff"
    assert read_header(with_segments(segment(0xE1, bytes(block)))).orientation == 7
    outside = segment(0xE1, exif(7)[:-10]) + segment(0xFE, exif(7)[-10:])
    assert read_header(with_segments(outside)).orientation == 1


def test_the_first_exif_segment_counts() -> None:
    first, second = (segment(0xE1, exif(value)) for value in (1, 6))
    assert read_header(with_segments(first, second)).orientation == 1
    assert read_header(with_segments(segment(0xE1, b"http://"), second)).orientation == 6


@pytest.mark.parametrize(
    "odd", [b"\xff" * 7, b"junk\xff\x00junk", b"\xff\x01", b"\xff\xd0", segment(0xFE, b"\xff\xd9")]
)
def test_skips_what_libjpeg_skips(odd: bytes) -> None:
    data = with_segments(segment(0xE0, b"JFIF\0"), odd, segment(0xE1, exif(8)))
    header = read_header(data)
    assert (header.height, header.width, header.orientation) == (HEIGHT, WIDTH, 8)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xd8\xff", "end before its frame header"),
        (without_data_after(0xC0), "end before its frame header"),
        (without_data_after(0xC0) + b"\xff\xd9", "without a frame header"),
        (b"\xff\xd8\xff\xe0\x00\x10", "end before its frame header"),
        (b"\xff\xd8\xff\xe0\x00\x01" + jpeg()[2:], "impossible length 1"),
        (frame_patched(1, b"\0\0"), "DNL"),
        (frame_patched(3, b"\0\0"), "width of 0"),
    ],
)
def test_reports_a_jpeg_without_a_usable_frame_header(data: bytes, reason: str) -> None:
    assert image_type(data) == "jpeg"
    with pytest.raises(SampleError, match=reason):
        read_header(data)


def test_every_cut_of_a_jpeg_is_found_even_where_a_thumbnail_ends() -> None:
    thumbnail = segment(0xE1, exif(1) + jpeg())
    data = with_segments(thumbnail)
    assert data[: 2 + len(thumbnail)].endswith(b"\xff\xd9")
    for size in range(len(data)):
        assert is_reported(data[:size]), size
    assert not is_reported(data)


@pytest.mark.parametrize("pillow_format", ["PNG", "WEBP"])
def test_every_cut_of_a_png_or_webp_is_found(pillow_format: str) -> None:
    data = saved(pillow_format)
    for size in range(len(data) - 8):
        assert is_reported(data[:size]), size
    assert not is_reported(data)


@pytest.mark.parametrize("rest", [b"\0", b"\n", bytes(512), jpeg(), b"\xff"])
def test_what_follows_the_end_is_no_fault(rest: bytes) -> None:
    assert not is_reported(jpeg() + rest)
    assert not is_reported(saved("PNG") + rest)


def test_a_frame_without_a_scan_is_cut() -> None:
    data = without_data_after(0xDA)
    for tail in (b"", b"\xff\xd9"):
        cut = find_cut(data + tail, read_header(data + tail))
        assert cut is not None
        assert "without coded pixels" in cut


STARTS = [b"", b"\xff\xd8\xff", *(saved(name)[:64] for name in ("PNG", "GIF", "WEBP", "TIFF"))]
SEEDS = [
    with_segments(segment(0xE1, exif(6))),
    *(saved(name) for name in ("PNG", "GIF", "WEBP", "BMP", "TIFF", "JPEG2000")),
]


@settings(max_examples=150, deadline=None)
@given(start=st.sampled_from(STARTS), rest=st.binary(max_size=200))
def test_random_bytes_raise_nothing_else(start: bytes, rest: bytes) -> None:
    is_reported(start + rest)


@settings(max_examples=250, deadline=None)
@given(
    seed=st.sampled_from(SEEDS),
    edits=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=6),
    size=st.none() | st.integers(0, 400),
)
def test_damaged_heads_raise_nothing_else(
    seed: bytes, edits: list[tuple[int, int]], size: int | None
) -> None:
    data = bytearray(seed)
    for position, value in edits:
        data[position % len(data)] = value
    is_reported(bytes(data[:size]))
