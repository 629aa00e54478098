"""A region has the pixels that it has in the whole picture, or there is an error that says why."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pytest
import simplejpeg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from readers.decode import decode
from readers.errors import CorruptDatasetError, OptionError, SampleError
from readers.header import read_header
from readers.rectangle import Rectangle, turn_back
from readers.region import cut_out, find_grid
from readers.sample import Pixels, Sample
from readers.stored import orient
from tests.coded import Factors, coded_jpeg
from tests.trees import turned

PHOTOGRAPHS = Path(__file__).parents[3] / "shared" / "images"

CUTTABLE: dict[str, Factors] = {
    "4:4:4": ((1, 1), (1, 1), (1, 1)),
    "4:2:2": ((2, 1), (1, 1), (1, 1)),
    "4:2:0": ((2, 2), (1, 1), (1, 1)),
    "4:4:0": ((1, 2), (1, 1), (1, 1)),
    "4:1:1": ((4, 1), (1, 1), (1, 1)),
    "4:4:1": ((1, 4), (1, 1), (1, 1)),
    "4:2:2 in taller MCUs": ((2, 2), (1, 2), (1, 2)),
    "gray": ((1, 1),),
    "gray with factors": ((2, 2),),
}
REFUSED: dict[str, Factors] = {
    "4:1:0": ((4, 2), (1, 1), (1, 1)),
    "coarse luma": ((1, 1), (2, 2), (1, 1)),
    "chroma of two kinds": ((2, 2), (2, 1), (1, 2)),
    "CMYK": ((1, 1),) * 4,
}
"""What simplejpeg reads not at all, or as CMYK."""


class Case(NamedTuple):
    """A JPEG and a part of it."""

    data: bytes
    size: tuple[int, int]
    region: Rectangle
    at_least: tuple[int, int] | None


def mcus(length: int, factors: list[int]) -> int:
    return -(-length // (8 * max(factors))) if len(factors) > 1 else -(-length // 8)


@st.composite
def cases(draw: st.DrawFn, kinds: dict[str, Factors]) -> Case:
    factors = kinds[draw(st.sampled_from(sorted(kinds)))]
    height, width = draw(st.integers(1, 75)), draw(st.integers(1, 110))
    row = mcus(width, [across for across, _ in factors])
    interval = draw(st.sampled_from([count for count in range(1, row + 1) if row % count == 0]))
    adobe = draw(st.sampled_from([None, 0])) if len(factors) == 3 else None
    data = coded_jpeg(draw(st.integers(0, 3)), height, width, factors, interval, adobe=adobe)
    orientation = draw(st.integers(1, 8))
    if orientation > 1:
        data = turned(data, orientation)
    if orientation >= 5:
        height, width = width, height
    top, bottom = sorted((draw(st.integers(0, height - 1)), draw(st.integers(0, height - 1))))
    left, right = sorted((draw(st.integers(0, width - 1)), draw(st.integers(0, width - 1))))
    region = Rectangle(top, left, bottom - top + 1, right - left + 1)
    scale = draw(st.sampled_from([1, 2, 4, 8]))
    at_least = (-(-region.height // scale), -(-region.width // scale)) if scale > 1 else None
    return Case(data, (height, width), region, at_least)


def cropped(case: Case) -> Pixels:
    """Decodes everything at the scale that the region's size allows, and crops."""
    header = read_header(case.data)
    scale = 1
    if case.at_least is not None:
        for candidate in (2, 4, 8):
            smaller = [-(-length // candidate) for length in case.region[2:]]
            if smaller[0] >= case.at_least[0] and smaller[1] >= case.at_least[1]:
                scale = candidate
    whole = simplejpeg.decode_jpeg(
        case.data,
        min_height=-(-header.height // scale),
        min_width=-(-header.width // scale),
    )
    marked = np.zeros((header.height, header.width, 3), np.uint8)
    upright = orient(marked, header.orientation)
    top, left, height, width = case.region
    upright[top : top + height, left : left + width] = 1
    if upright is not marked:  # the turn that undoes each of these is itself, but for two
        marked = orient(upright, {6: 8, 8: 6}.get(header.orientation, header.orientation))
    rows = np.flatnonzero(marked[:, :, 0].any(axis=1)) // scale
    columns = np.flatnonzero(marked[:, :, 0].any(axis=0)) // scale
    part = whole[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return orient(part, header.orientation)


Lengths: TypeAlias = NDArray[np.uint16]


def find_bounds(data: bytes) -> NDArray[np.int64]:
    grid = find_grid(data, read_header(data))
    assert grid is not None
    return grid.bounds


def lengths_of(data: bytes) -> Lengths:
    lengths = np.diff(find_bounds(data))
    lengths[-1] -= 2
    return lengths.astype(np.uint16)


def a_sample(data: bytes, lengths: Lengths | None) -> Sample:
    return Sample("key", data, None, {}, "path", lengths)


@settings(max_examples=1500, deadline=None)
@given(case=cases(CUTTABLE))
def test_a_region_is_equal_to_the_whole_cropped(case: Case) -> None:
    wanted = cropped(case)
    pixels = decode(case.data, region=case.region, at_least=case.at_least)
    assert pixels.flags.c_contiguous
    np.testing.assert_array_equal(pixels, wanted)
    sample = a_sample(case.data, lengths_of(case.data))
    np.testing.assert_array_equal(
        decode(sample, region=case.region, at_least=case.at_least), wanted
    )


@settings(max_examples=300, deadline=None)
@given(case=cases(CUTTABLE))
def test_a_cut_is_a_sound_jpeg_no_larger_than_it_must_be(case: Case) -> None:
    header = read_header(case.data)
    grid = find_grid(case.data, header)
    assert grid is not None
    wanted = turn_back(case.region, *case.size, header.orientation)
    cut = cut_out(case.data, header, grid, wanted)
    if cut is None:
        return
    strictly = simplejpeg.decode_jpeg(cut.data)
    top, left, height, width = cut.place
    assert strictly.shape[:2] == (height, width)
    assert find_grid(bytes(cut.data), read_header(bytes(cut.data))) is not None
    # A cell, the part of another that the rectangle reaches into, and one of context on each side.
    assert height <= wanted.height + 4 * grid.down.cell
    assert width <= wanted.width + 4 * grid.across.cell
    whole = simplejpeg.decode_jpeg(case.data)[top : top + height, left : left + width]
    if grid.down.ratio == grid.across.ratio == 1:
        np.testing.assert_array_equal(strictly, whole)


@settings(max_examples=200, deadline=None)
@given(case=cases(REFUSED))
def test_what_cannot_be_cut_is_decoded_whole(case: Case) -> None:
    top, left, height, width = case.region
    whole = decode(case.data)
    pixels = decode(case.data, region=case.region)
    np.testing.assert_array_equal(pixels, whole[top : top + height, left : left + width])


@pytest.mark.parametrize("pillow_format", ["PNG", "TIFF", "WEBP", "JPEG"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_region_of_any_other_image(pillow_format: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    noise = np.random.default_rng(0).integers(0, 255, (21, 34, 3), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(noise).save(stream, pillow_format, exif=exif.tobytes())
    whole = decode(stream.getvalue())
    pixels = decode(stream.getvalue(), region=(3, 4, 15, 12), at_least=(1, 1))
    if pillow_format != "JPEG":
        np.testing.assert_array_equal(pixels, whole[3:18, 4:16])
    np.testing.assert_array_equal(decode(whole, region=(3, 4, 15, 12)), whole[3:18, 4:16])


@pytest.mark.parametrize(
    "region",
    [(-1, 0, 5, 5), (0, 0, 0, 5), (0, 0, 5, 0), (30, 0, 11, 5), (0, 49, 5, 12), (0, 0, 1, -1)],
)
def test_a_region_outside_of_the_picture_is_an_error(region: tuple[int, int, int, int]) -> None:
    data = coded_jpeg(0, 40, 60, CUTTABLE["4:2:0"], 1)
    for image in (data, decode(data)):
        with pytest.raises(OptionError, match="doesn't lie within the picture of 40 x 60"):
            decode(image, region=region)


DATA = coded_jpeg(0, 90, 150, CUTTABLE["4:2:0"], 2)
OTHER = coded_jpeg(1, 90, 150, CUTTABLE["4:2:0"], 2)
REGION = (20, 70, 30, 40)


def swapped(lengths: Lengths) -> Lengths:
    first, second = 3, int(np.flatnonzero(lengths != lengths[3])[0])
    lengths = lengths.copy()
    lengths[[first, second]] = lengths[[second, first]]
    return lengths


SPOILED: dict[str, Lengths] = {
    "another file's": lengths_of(OTHER),
    "shuffled": np.random.default_rng(0).permutation(lengths_of(DATA)),
    "two swapped": swapped(lengths_of(DATA)),
    "one missing": lengths_of(DATA)[:-1],
    "one more": np.append(lengths_of(DATA), np.uint16(1)),
    "backwards": lengths_of(DATA)[::-1],
    "zeros": lengths_of(DATA) * 0,
    "too long": np.full_like(lengths_of(DATA), 65535),
    "two dimensions": lengths_of(DATA).reshape(2, -1),
    "a round of markers late": np.roll(lengths_of(DATA), 8),
    "empty": lengths_of(DATA)[:0],
}


@pytest.mark.parametrize("lengths", SPOILED.values(), ids=SPOILED)
def test_a_table_that_does_not_fit_is_an_error(lengths: Lengths) -> None:
    with pytest.raises(CorruptDatasetError, match=r"sample 'key': .* doesn't fit it") as raised:
        decode(a_sample(DATA, lengths), region=REGION)
    assert raised.value.key == "key"


def test_a_table_for_an_image_without_markers_is_an_error() -> None:
    plain = coded_jpeg(0, 90, 150, CUTTABLE["4:2:0"], 0)
    for data in (plain, coded_jpeg(0, 90, 150, CUTTABLE["4:2:0"], 3)):
        with pytest.raises(CorruptDatasetError, match="doesn't fit it"):
            decode(a_sample(data, lengths_of(DATA)), region=REGION)


def without_a_marker(data: bytes, number: int) -> bytes:
    place = int(find_bounds(data)[number]) - 2
    return data[:place] + data[place + 2 :]


def with_a_marker_twice(data: bytes, number: int) -> bytes:
    place = int(find_bounds(data)[number])
    return data[:place] + data[place - 2 : place] + data[place:]


def without_a_segment(data: bytes, number: int) -> bytes:
    bounds = find_bounds(data)
    return data[: bounds[number]] + data[bounds[number + 1] :]


def with_another_interval(data: bytes, interval: int) -> bytes:
    return data.replace(b"\xff\xdd\0\4\0\2", b"\xff\xdd\0\4\0" + bytes((interval,)))


@pytest.mark.parametrize(
    "data",
    [
        without_a_marker(DATA, 5),
        without_a_marker(DATA, 15),
        with_a_marker_twice(DATA, 7),
        without_a_segment(DATA, 9),
        without_a_segment(DATA, 0),
        with_another_interval(DATA, 1),
        with_another_interval(DATA, 5),
        DATA[:-2],
        DATA[: len(DATA) // 2],
        DATA[: len(DATA) // 2] + b"\xff\xd9",
        DATA[: DATA.index(b"\xff\xda") + 9],
    ],
)
def test_a_damaged_file_gets_the_verdict_of_the_decoder(data: bytes) -> None:
    try:
        whole = decode(data)
    except SampleError as error:
        with pytest.raises(SampleError, match=re.escape(str(error))):
            decode(data, region=REGION)
    else:
        np.testing.assert_array_equal(decode(data, region=REGION), whole[20:50, 70:110])
    with pytest.raises(CorruptDatasetError):
        decode(a_sample(data, lengths_of(DATA)), region=REGION)


def test_what_follows_the_picture_is_no_matter() -> None:
    wanted = decode(DATA)[20:50, 70:110]
    np.testing.assert_array_equal(decode(DATA + OTHER, region=REGION), wanted)


@settings(max_examples=400, deadline=None)
@given(
    edits=st.lists(st.tuples(st.integers(0, 8000), st.integers(0, 255)), min_size=1, max_size=4),
    with_table=st.booleans(),
)
def test_damage_raises_nothing_else(edits: list[tuple[int, int]], *, with_table: bool) -> None:
    data = bytearray(DATA)
    for position, value in edits:
        data[position % len(data)] = value
    image = a_sample(bytes(data), lengths_of(DATA) if with_table else None)
    try:
        part = decode(image, region=REGION, max_pixels=1_000_000)
        assert part.shape == (30, 40, 3)
    except (SampleError, CorruptDatasetError, OptionError) as error:
        assert str(error)  # noqa: PT017, either outcome is right, but a report says why


@pytest.mark.skipif(not PHOTOGRAPHS.is_dir(), reason="the photographs aren't beside the repository")
def test_regions_of_photographs() -> None:
    draw = np.random.default_rng(0)
    for number, file in enumerate(sorted(PHOTOGRAPHS.glob("*/*"))[::10]):
        stream = io.BytesIO()
        with Image.open(file) as image:
            mcu = 8 if image.mode != "RGB" or number % 3 == 0 else 16
            blocks = -(-image.width // mcu)
            interval = min(count for count in range(3, blocks + 1) if blocks % count == 0)
            options = {} if image.mode != "RGB" else {"subsampling": min(number % 3, 2)}
            image.save(stream, "JPEG", quality=90, restart_marker_blocks=interval, **options)
        data = stream.getvalue()
        whole = decode(data)
        for _ in range(5):
            top, bottom = sorted(draw.integers(0, whole.shape[0], 2).tolist())
            left, right = sorted(draw.integers(0, whole.shape[1], 2).tolist())
            region = (top, left, bottom - top + 1, right - left + 1)
            np.testing.assert_array_equal(
                decode(data, region=region), whole[top : bottom + 1, left : right + 1]
            )
