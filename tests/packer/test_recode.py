"""The rewriting of JPEGs loses nothing, and refuses what it can't vouch for."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable

import numpy as np
import pytest
import simplejpeg
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

pytest.importorskip("numba")

from packer.recode.coefficients import decode_coefficients
from packer.recode.interval import intervals
from packer.recode.markers import Markers
from packer.recode.recode import Recoded, recode
from packer.segment_check import segments_fault
from readers.decode import decode
from readers.errors import NotRecodableError
from readers.sample import Pixels
from tests.jpegs import jpegs
from tests.trees import jpeg, turned


def rewritten(data: bytes) -> Recoded:
    return recode(data, max_pixels=None)


def pixels(data: bytes) -> Pixels:
    """Decodes in libjpeg-turbo's strict mode, in which a warning is an error."""
    found: Pixels = simplejpeg.decode_jpeg(data, strict=True)
    return found


def encoded(picture: Pixels, **options: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "JPEG", **options)
    return out.getvalue()


def photograph(height: int = 375, width: int = 500) -> Pixels:
    noise = np.random.default_rng(5).integers(0, 256, (height // 8, width // 8, 3), np.uint8)
    return np.asarray(Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC))


def noise(height: int, width: int) -> Pixels:
    return np.random.default_rng(6).integers(0, 256, (height, width, 3), np.uint8)


def head(data: bytes) -> list[tuple[int, bytes]]:
    markers = Markers(data)
    markers.next_scan()
    return [(kept.marker, kept.content) for kept in markers.kept if kept.marker >= 0xE0]


@settings(max_examples=150, deadline=None)
@given(data=jpegs())
def test_a_rewritten_jpeg_is_the_same_picture(data: bytes) -> None:
    made = rewritten(data)
    assert np.array_equal(pixels(made.jpeg), pixels(data))
    before, after = (decode_coefficients(Markers(one), None) for one in (data, made.jpeg))
    for plane in before.planes:
        rows = plane.first + plane.stride * np.arange(plane.rows)[:, None]
        shown = rows + np.arange(plane.columns)
        assert np.array_equal(before.blocks[shown], after.blocks[shown])
    assert head(made.jpeg) == head(data)
    with Image.open(io.BytesIO(data)) as one, Image.open(io.BytesIO(made.jpeg)) as other:
        assert np.array_equal(np.asarray(one), np.asarray(other))
        assert one.info.get("icc_profile") == other.info.get("icc_profile")
        assert one.getexif() == other.getexif()
    assert segments_fault(made.jpeg, made.segments) is None
    again = rewritten(made.jpeg)
    assert again.jpeg == made.jpeg
    assert np.array_equal(again.segments, made.segments)


def test_segments_are_the_pieces_between_the_markers() -> None:
    made = rewritten(encoded(photograph(), quality=90))
    markers = Markers(made.jpeg)
    markers.next_scan()
    columns, rows = 32, 24
    assert columns % markers.interval == 0
    assert len(made.segments) == columns * rows // markers.interval
    end = markers.position
    for number, length in enumerate(made.segments[:-1].tolist()):
        end += length
        assert made.jpeg[end - 2 : end] == bytes((0xFF, 0xD0 + number % 8))
    assert made.jpeg[end + int(made.segments[-1]) :] == b"\xff\xd9"


@pytest.mark.parametrize("optimize", [False, True])
def test_it_costs_little(*, optimize: bool) -> None:
    """Against tables of the shortest code, and against those that every encoder has built in."""
    for quality in (50, 75, 90):
        source = encoded(photograph(), quality=quality, optimize=optimize)
        size = len(rewritten(source).jpeg)
        assert size <= (1.015 if optimize else 1) * len(source)


@pytest.mark.parametrize(
    ("columns", "wanted"), [(1, {1}), (31, {1, 31}), (32, {1, 2, 4, 8, 16, 32})]
)
def test_intervals_divide_a_row_and_grow_shorter(columns: int, wanted: set[int]) -> None:
    for nbytes in (1, 10_000, 10**9):
        tried = list(intervals(columns, columns * 10, nbytes))
        assert set(tried) <= wanted
        assert tried == sorted(tried, reverse=True)
        assert tried[-1] == 1
    assert next(intervals(columns, columns * 10, 1)) == columns
    assert list(intervals(columns, columns * 10, 10**9)) == [1]


def test_a_segment_never_outgrows_its_length() -> None:
    """509 MCUs of noise are a row with no divisor, and more bytes than 16 bits can count."""
    source = encoded(noise(16, 8 * 509), quality=100, subsampling=0)
    made = rewritten(source)
    assert len(source) > 2 * 65_535
    assert len(made.segments) == 2 * 509
    assert np.array_equal(pixels(made.jpeg), pixels(source))


def test_wide_quantisation_tables_stay() -> None:
    source = jpeg(1)
    at = source.index(b"\xff\xdb\0\x43\0")
    wide = b"".join(struct.pack(">H", entry) for entry in source[at + 5 : at + 69])
    source = source[:at] + b"\xff\xdb\0\x83\x10" + wide + source[at + 69 :]
    made = rewritten(source).jpeg
    assert np.array_equal(pixels(made), pixels(source))
    assert b"\xff\xc1" in made  # a baseline frame has tables of one byte an entry


def test_what_follows_the_image_goes_and_its_index_with_it() -> None:
    source = jpeg(1)
    mpf = b"\xff\xe2\0\x08MPF\0xx"
    other = b"\xff\xe2\0\x08Other\0"
    made = rewritten(source[:2] + mpf + other + source[2:] + b"second picture").jpeg
    assert made == rewritten(source[:2] + other + source[2:]).jpeg


def test_metadata_may_go_but_for_what_decoding_needs() -> None:
    out = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a private description"
    options = {"exif": exif, "icc_profile": b"profile" * 9, "comment": b"a comment"}
    Image.fromarray(noise(30, 40)).save(out, "JPEG", **options)
    source = out.getvalue()
    made = recode(source, max_pixels=None, metadata=False).jpeg
    assert np.array_equal(decode(made), decode(source))
    with Image.open(io.BytesIO(made)) as image:
        assert dict(image.getexif()) == {0x0112: 6}
        assert image.info["icc_profile"] == options["icc_profile"]
        assert "comment" not in image.info
        assert image.info["jfif"]
    assert b"private" not in made
    again = recode(made, max_pixels=None, metadata=False).jpeg
    assert again == made == rewritten(made).jpeg


def _progressive(height: int = 40, width: int = 40) -> bytes:
    return encoded(photograph(height, width), progressive=True, quality=90)


def _scans(data: bytes) -> list[int]:
    """Gives where the scans of a progressive JPEG begin."""
    markers = Markers(data)
    found = []
    while markers.next_scan() is not None:
        found.append(markers.position)
        markers.position = data.index(b"\xff", markers.position)
        while data[markers.position + 1] in {0, *range(0xD0, 0xD8)}:
            markers.position = data.index(b"\xff", markers.position + 1)
    return found


def _without_last_scan(data: bytes) -> bytes:
    return data[: data.rindex(b"\xff\xc4")] + b"\xff\xd9"


def _set(data: bytes, marker: bytes, offset: int, value: bytes) -> bytes:
    at = data.index(marker) + offset
    return data[:at] + value + data[at + len(value) :]


def _restarts(data: bytes) -> bytes:
    return encoded(pixels(data), restart_marker_blocks=1)


_REFUSED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "12 bit": ("12 bit", lambda d: _set(d, b"\xff\xc0", 4, b"\x0c")),
    "arithmetic": ("arithmetic coding", lambda d: d.replace(b"\xff\xc0", b"\xff\xc9", 1)),
    "lossless": ("lossless", lambda d: d.replace(b"\xff\xc0", b"\xff\xc3", 1)),
    "hierarchical": (
        "hierarchical",
        lambda d: d.replace(b"\xff\xc0", b"\xff\xde\0\x02\xff\xc0", 1),
    ),
    "CMYK": ("CMYK", lambda _: jpeg(4, mode="CMYK")),
    "DNL": ("DNL", lambda d: d[:-2] + b"\xff\xdc\0\x04\0\x18\xff\xd9"),
    "no height": ("DNL", lambda d: _set(d, b"\xff\xc0", 5, b"\0\0")),
    "no width": ("width of 0", lambda d: _set(d, b"\xff\xc0", 7, b"\0\0")),
    "sampling": ("sampling factors", lambda d: _set(d, b"\xff\xc0", 11, b"\x33")),
    "two frames": ("more than one frame", lambda d: _twice(d, b"\xff\xc0")),
    "no end": ("end", lambda d: d[:-2]),
    "cut": ("end", lambda d: d[:-40]),
    "cut and closed": ("end early", lambda d: d[:-40] + b"\xff\xd9"),
    "junk before a marker": ("belong to nothing", lambda d: d[:2] + b"x" + d[2:]),
    "junk in the scan": ("left over", lambda d: d[:-2] + b"xx\xff\xd9"),
    "FF in the scan": ("no marker", lambda d: d[:-2] + b"\xff\xff\0\xff\xd9"),
    "no quantisation": ("quantisation table", lambda d: _without(d, b"\xff\xdb")),
    "no Huffman table": ("Huffman table", lambda d: _without(d, b"\xff\xc4")),
    "Huffman codes of ones": (
        "Huffman table",
        lambda d: _set(d, b"\xff\xc4", 5, b"\x02" + bytes(15)),
    ),
    "no restart marker": (
        "restart markers are missing",
        lambda d: _restarts(d).replace(b"\xff\xd2", b"", 1),
    ),
    "restart out of order": (
        "out of order",
        lambda d: _restarts(d).replace(b"\xff\xd1", b"\xff\xd2", 1),
    ),
    "stray restart": ("damaged", lambda d: d[:-9] + b"\xff\xd0" + d[-9:]),
    "spectral selection": ("progressive scan", lambda d: _set(d, b"\xff\xda", 12, b"\x20")),
    "scan missing": ("no scan tells", lambda _: _without_last_scan(_progressive())),
    "scan twice": (
        "don't follow each other",
        lambda _: _progressive()[:-2] + _progressive()[_progressive().rindex(b"\xff\xc4") :],
    ),
    "metadata between scans": (
        "between scans",
        lambda _: _set_before(_progressive(), b"\xff\xc4", b"\xff\xfe\0\x04hi"),
    ),
    "two components": (
        "2 components",
        lambda d: _set(d, b"\xff\xc0", 3, b"\x0e\x08\0\x18\0\x20\x02"),
    ),
    "bomb": ("bytes for", lambda d: _set(d, b"\xff\xc0", 5, b"\xff\xf0\xff\xf0")),
    "nothing": ("no end marker", lambda _: b"\xff\xd8\xff"),
    "only a head": ("no coded pixels", lambda _: b"\xff\xd8\xff\xd9"),
    "Adobe": (
        "libjpeg-turbo refuses",
        lambda d: d[:2] + b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\x07" + d[20:],
    ),
}


def _set_before(data: bytes, last: bytes, inserted: bytes) -> bytes:
    at = data.rindex(last)
    return data[:at] + inserted + data[at:]


def _segment_at(data: bytes, marker: bytes) -> tuple[int, int]:
    at = data.index(marker)
    return at, at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")


def _twice(data: bytes, marker: bytes) -> bytes:
    start, end = _segment_at(data, marker)
    return data[:end] + data[start:end] + data[end:]


def _without(data: bytes, marker: bytes) -> bytes:
    while marker in data[: data.index(b"\xff\xda")]:
        start, end = _segment_at(data, marker)
        data = data[:start] + data[end:]
    return data


@pytest.mark.parametrize(("reason", "spoil"), _REFUSED.values(), ids=_REFUSED)
def test_what_it_cannot_vouch_for_it_refuses(reason: str, spoil: Callable[[bytes], bytes]) -> None:
    with pytest.raises(NotRecodableError, match=reason):
        rewritten(spoil(jpeg(3)))


def test_a_picture_over_the_limit_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(NotRecodableError, match="max_pixels"):
        recode(jpeg(1), max_pixels=24 * 32 - 1)
    assert recode(jpeg(1), max_pixels=24 * 32).segments.size


def _segment(marker: int, content: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(content) + 2) + content


def _empty_progressive(scans: list[tuple[int, int, int]]) -> bytes:
    """Makes a progressive JPEG of one gray block; scans are of a coefficient, from and to a bit."""
    one_code = b"\x01" + bytes(15) + b"\0"
    parts = [
        b"\xff\xd8",
        _segment(0xDB, b"\0" + bytes([1] * 64)),
        _segment(0xC2, b"\x08\0\x08\0\x08\x01\x01\x11\0"),
        _segment(0xC4, b"\0" + one_code + b"\x10" + one_code),
    ]
    for k, high, low in scans:
        parts.append(_segment(0xDA, bytes((1, 1, 0, k, k, high << 4 | low))) + b"\x7f")
    return b"".join([*parts, b"\xff\xd9"])


def test_a_scan_script_that_never_ends_is_refused() -> None:
    each = [(k, 0, 0) for k in range(64)]
    assert np.array_equal(
        pixels(rewritten(_empty_progressive(each)).jpeg), pixels(_empty_progressive(each))
    )
    in_two = [(0, 0, 0), *((k, 0, 1) for k in range(1, 64)), *((k, 1, 0) for k in range(1, 64))]
    with pytest.raises(NotRecodableError, match="more than 64 scans"):
        rewritten(_empty_progressive(in_two))


def test_a_view_is_as_good_as_bytes() -> None:
    for data in (jpeg(1), bytearray(jpeg(1))):
        assert recode(memoryview(data), max_pixels=None).jpeg == rewritten(jpeg(1)).jpeg


SOURCES = [
    jpeg(3),
    turned(jpeg(4, 0, 20, 50, "L"), 6),
    _progressive(),
    encoded(noise(20, 40), quality=60, restart_marker_blocks=3, subsampling=0),
    encoded(noise(9, 17), quality=98, progressive=True, optimize=True, subsampling=1),
]


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """Draws a JPEG with some bytes changed, taken out, put in, or moved."""
    data = bytearray(draw(st.sampled_from(SOURCES)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(2, len(data) - 1))
        kind = draw(st.sampled_from(["byte", "bit", "cut", "insert", "drop", "copy"]))
        if kind == "byte":
            data[at] = draw(st.integers(0, 255))
        elif kind == "bit":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del data[at:]
        elif kind == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=4))
        elif kind == "drop":
            del data[at : at + draw(st.integers(1, 4))]
        else:
            length = draw(st.integers(1, 200))
            data[at:at] = data[at - length : at]
        if len(data) < 4:
            break
    return bytes(data)


def hold_to_its_word(data: bytes) -> None:
    """A spoiled file is refused by name, or it is rewritten and libjpeg sees the same picture."""
    try:
        made = recode(data, max_pixels=1 << 20)
    except NotRecodableError:
        return
    assert np.array_equal(pixels(made.jpeg), pixels(data))
    assert segments_fault(made.jpeg, made.segments) is None
    assert rewritten(made.jpeg).jpeg == made.jpeg


@settings(max_examples=400, deadline=None)
@example(data=b"\xff\xd8\xff\xda\0\x02")
@given(data=spoiled())
def test_spoiled_files_are_refused_or_rewritten_without_loss(data: bytes) -> None:
    hold_to_its_word(data)
