"""Every file of the corpus of odd images gets the result that its line states.

The corpus lies beside the repository, and isn't part of it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from packer.image_policy import Keep
from packer.prepare import prepare
from readers.decode import MAX_PIXELS, Decoded, decode, decode_stored
from readers.errors import SampleError
from readers.header import image_type, read_header
from readers.sample import Pixels, Sample

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
TOLERANCE, CMYK_TOLERANCE = 2, 4
PICTURE_CLASSES = {"clean", "other-image"}
REPORTED_CLASSES = {"partial", "not-decodable", "bomb"}

Line = dict[str, Any]


def lines() -> list[Line]:
    path = CORPUS / "expected.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


Image.init()
LINES = [line for line in lines() if line["content"] != "heif:avif" or "AVIF" in Image.SAVE]
PICTURES = [line for line in LINES if line["class"] in PICTURE_CLASSES]


def each_of(chosen: list[Line]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("line", chosen, ids=[Path(line["file"]).name for line in chosen])


pytestmark = pytest.mark.skipif(not LINES, reason="the corpus isn't beside the repository")


def content(line: Line) -> bytes:
    return (CORPUS / str(line["file"])).read_bytes()


def grid(pixels: Pixels) -> list[float]:
    """Means of 4 x 4 parts of a picture, row by row, RGB."""
    rows, columns = pixels.shape[:2]
    means: list[float] = []
    for i in range(4):
        for j in range(4):
            top, left = i * rows // 4, j * columns // 4
            bottom = max(top + 1, (i + 1) * rows // 4)
            right = max(left + 1, (j + 1) * columns // 4)
            means.extend(pixels[top:bottom, left:right].mean(axis=(0, 1)))
    return means


def check_picture(pixels: Pixels, wanted: Line, tolerance: float) -> None:
    assert pixels.shape == (wanted["height"], wanted["width"], 3)
    assert np.abs(np.subtract(grid(pixels), wanted["grid4x4"])).max() <= tolerance
    if "rgb_mean" in wanted:
        mean = pixels.mean(axis=(0, 1))
        assert np.abs(mean - wanted["rgb_mean"]).max() <= tolerance


def decoded_or_reason(data: bytes) -> Decoded | str:
    try:
        return decode_stored(data, read_header(data))
    except SampleError as error:
        return error.message


def tolerance_of(line: Line) -> float:
    components = (line.get("jpeg") or {}).get("components")
    spread = float(line["pixels"]["decoder_spread"])
    return spread + (CMYK_TOLERANCE if components == 4 else TOLERANCE)


@each_of(LINES)
def test_decodes_or_reports_as_stated(line: Line) -> None:
    data = content(line)
    result = decoded_or_reason(data)
    if line["class"] in REPORTED_CLASSES:
        assert isinstance(result, str)
        assert result
        return
    if isinstance(result, str):
        assert line["class"] in {"damaged", "split"}, result
        return
    if line["class"] == "clean":
        assert (result.decoder, result.note) == ("simplejpeg", None)
    if line["class"] == "damaged":
        assert result.note is not None
    if line["class"] in PICTURE_CLASSES:
        check_picture(result.pixels, line["pixels"], tolerance_of(line))
    elif "pixels" in line:
        assert result.pixels.shape[:2] == (line["pixels"]["height"], line["pixels"]["width"])


@each_of(PICTURES)
def test_turns_upright_as_stated(line: Line) -> None:
    pixels = decode(content(line))
    orientation = read_header(content(line)).orientation
    if "upright" in line:
        assert orientation == line["orientation"]
        check_picture(pixels, line["upright"], tolerance_of(line))
    elif line["content"] == "heif:avif":
        assert orientation == (line["decoders"]["pillow"]["orientation"] or 1)
    else:
        assert orientation == 1
        assert pixels.shape[:2] == (line["pixels"]["height"], line["pixels"]["width"])


@each_of(LINES)
def test_keep_gives_back_the_exact_bytes_and_says_what_is_wrong(line: Line) -> None:
    data = content(line)
    sample = Sample("key", data, None, {}, line["file"])
    record = prepare(sample, Keep(), max_pixels=MAX_PIXELS, keep_bad=True)
    assert record.image == data
    assert record.type == image_type(data)
    jpeg = line.get("jpeg") or {}
    if line["class"] in PICTURE_CLASSES:
        assert record.note is None
    if line["class"] == "partial":
        assert record.note is not None
        assert "cut short" in record.note
    if record.type == "jpeg" and record.height:
        assert (record.height, record.width) == (jpeg["height"], jpeg["width"])


@each_of(LINES)
def test_a_full_check_reports_all_that_does_not_decode(line: Line) -> None:
    sample = Sample("key", content(line), None, {}, line["file"])
    policy = Keep(check="decode")
    if line["class"] in REPORTED_CLASSES:
        with pytest.raises(SampleError, match=f"^{line['file']}: ."):
            prepare(sample, policy, max_pixels=MAX_PIXELS, keep_bad=False)
    record = prepare(sample, policy, max_pixels=MAX_PIXELS, keep_bad=True)
    assert record.image == sample.image
    assert (record.note is None) <= (line["class"] in PICTURE_CLASSES | {"split"})


@each_of(LINES)
def test_type_goes_by_content(line: Line) -> None:
    kind = image_type(content(line))
    stated = line["content"].removeprefix("heif:")
    if stated in {"other", "empty"}:
        assert kind == "unknown"
    elif kind == "unknown":
        assert line["class"] in REPORTED_CLASSES | {"split"}
    else:
        assert kind == stated


def test_bombs_are_refused_in_little_memory() -> None:
    code = """
import resource, sys
from readers.decode import decode
from readers.errors import SampleError
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
for name in sys.argv[1:]:
    try:
        decode(open(name, "rb").read())
    except SampleError as error:
        print(error)
"""
    bombs = [line for line in LINES if line["class"] == "bomb"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore::ResourceWarning", "-c", code]
        + [str(CORPUS / line["file"]) for line in bombs],
        capture_output=True,
        text=True,
        check=True,
    )
    reasons = done.stdout.splitlines()
    assert len(reasons) == len(bombs)
    for line, reason in zip(bombs, reasons, strict=True):
        if not reason.startswith("no image"):
            assert f"= {line['header_pixels']} pixels, over the limit of" in reason


@each_of(LINES)
def test_a_region_is_equal_to_the_whole_cropped_or_the_same_error(line: Line) -> None:
    data = content(line)
    try:
        whole = decode(data)
    except SampleError as error:
        with pytest.raises(SampleError, match=f"^{re.escape(str(error))}$"):
            decode(data, region=(0, 0, 1, 1))
        return
    height, width = whole.shape[:2]
    top, left = height // 3, width // 4
    region = (top, left, (height - top + 1) // 2, (width - left + 1) // 2)
    pixels = decode(data, region=region)
    assert np.array_equal(pixels, whole[top : top + region[2], left : left + region[3]])
