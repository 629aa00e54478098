"""Every file of the corpus of odd images, through every format.

The corpus lies beside the repository, and isn't part of it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from packer.convert import convert
from packer.image_policy import Decode, ImagePolicy, Keep, Reencode, Region, Resize
from packer.options import ConvertOptions
from packer.sources.opening import open_source
from packer.verify import verify
from readers.dataset import Dataset
from readers.decode import decode
from readers.errors import SampleError
from readers.opening import open_dataset
from readers.sample import Pixels
from tests.trees import PACKINGS, REGION, Packing, image_bytes

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
_PICTURES = {"clean", "other-image"}
_REPORTED = {"partial", "not-decodable", "bomb"}

Line = dict[str, Any]

pytestmark = pytest.mark.skipif(
    not CORPUS.exists(), reason="the corpus isn't beside the repository"
)


@pytest.fixture(scope="session")
def lines() -> dict[str, Line]:
    Image.init()
    text = (CORPUS / "expected.jsonl").read_text(encoding="utf-8")
    found = [json.loads(line) for line in text.splitlines()]
    if "AVIF" not in Image.SAVE:
        found = [line for line in found if line["content"] != "heif:avif"]
    return {f"c/{Path(line['file']).name}": line for line in found}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, lines: dict[str, Line]) -> Path:
    """The corpus as a folder of one class."""
    root = tmp_path_factory.mktemp("corpus")
    (root / "c").mkdir()
    for path, line in lines.items():
        shutil.copyfile(CORPUS / line["file"], root / path)
    return root


def pack(
    folder: Path, target: Path, format: Packing, policy: ImagePolicy, on_error: str
) -> Dataset:
    options = ConvertOptions(
        image=policy,
        shard_samples=50,
        on_error=on_error,  # type: ignore[arg-type]  # one of the three
    )
    convert(open_source(folder), target, format=format.name, options=options)
    assert verify(target).faults == []
    return open_dataset(target)


def ledger_of(dataset: Dataset, *actions: str) -> dict[str, str]:
    return {e.path: e.reason for e in dataset.manifest.ledger if e.action in actions}


@pytest.mark.parametrize(
    "format", [one for one in PACKINGS if not one.pixels], ids=str, indirect=True, scope="session"
)
@pytest.mark.parametrize("check", ["header", "decode"])
def test_kept_files_have_their_exact_bytes(
    tmp_path: Path, folder: Path, lines: dict[str, Line], format: Packing, check: str
) -> None:
    policy = Keep(check=check)  # type: ignore[arg-type]  # one of the two
    with pack(folder, tmp_path / "o", format, policy, "keep") as dataset:
        left_out = ledger_of(dataset, "left out")
        held = {s.path: hashlib.sha256(image_bytes(s)).hexdigest() for s in dataset}
        remarks = ledger_of(dataset, "kept", "noted")
    assert held.keys() | left_out.keys() == lines.keys()
    assert not held.keys() & left_out.keys()
    assert {path: lines[path]["sha256"] for path in held} == held
    for path in left_out:
        assert lines[path]["content"] in {"empty", "other"}
        assert Path(path).suffix.lower() not in {".jpg", ".jpeg"}
    assert all(remarks.values())
    if check == "decode":
        assert {p for p in held if lines[p]["class"] in _REPORTED} <= remarks.keys()
    assert not {path for path in remarks if lines[path]["class"] == "clean"}


@pytest.mark.parametrize(
    "format", [one for one in PACKINGS if one.pixels], ids=str, indirect=True, scope="session"
)
def test_decoded_files_are_right_or_reported(
    tmp_path: Path, folder: Path, lines: dict[str, Line], format: Packing
) -> None:
    with pack(folder, tmp_path / "o", format, Decode(), "skip") as dataset:
        found = {sample.path: sample.image for sample in dataset}
        _check(found, ledger_of(dataset, "skipped", "left out"), lines, folder)


@pytest.mark.parametrize(
    "policy", [Reencode(quality=95), Resize(side=24)], ids=["reencode", "resize"]
)
@pytest.mark.parametrize(
    "format", [one for one in PACKINGS if not one.pixels], ids=str, indirect=True, scope="session"
)
def test_encoded_files_are_right_or_reported(
    tmp_path: Path, folder: Path, lines: dict[str, Line], format: Packing, policy: ImagePolicy
) -> None:
    with pack(folder, tmp_path / "o", format, policy, "skip") as dataset:
        reported = ledger_of(dataset, "skipped", "left out")
        assert {s.path for s in dataset} | reported.keys() == lines.keys()
        assert all(reported.values())
        reported_wrongly = {p for p in reported if lines[p]["class"] in _PICTURES}
        assert not reported_wrongly
        for row, sample in enumerate(dataset):
            size = dataset.index.heights.item(row), dataset.index.widths.item(row)
            assert decode(image_bytes(sample)).shape == (*size, 3)
            if isinstance(policy, Resize):
                assert min(size) <= 24
            assert dataset.index.orientations.item(row) == 1


@pytest.mark.parametrize("format", [REGION], ids=str, indirect=True, scope="session")
def test_rewritten_files_show_the_same_or_are_kept_and_named(
    tmp_path: Path, folder: Path, lines: dict[str, Line], format: Packing
) -> None:
    rewritten = 0
    with pack(folder, tmp_path / "o", format, Region(), "keep") as dataset:
        remarks = ledger_of(dataset, "kept", "noted")
        assert {s.path for s in dataset} | ledger_of(dataset, "left out").keys() == lines.keys()
        for sample in dataset:
            original = (folder / sample.path).read_bytes()
            if sample.segments is None:
                assert sample.image == original
                assert lines[sample.path]["content"] != "jpeg" or sample.path in remarks
                continue
            rewritten += 1
            assert sample.path not in remarks
            pixels = simplejpeg.decode_jpeg(image_bytes(sample), strict=True)
            assert np.array_equal(pixels, simplejpeg.decode_jpeg(original, strict=True))
            assert np.array_equal(decode(image_bytes(sample)), decode(original))
    assert rewritten > len([one for one in lines.values() if one["class"] == "clean"]) / 2


def _check(
    found: dict[str, Any], reported: dict[str, str], lines: dict[str, Line], folder: Path
) -> None:
    assert found.keys() | reported.keys() == lines.keys()
    assert not found.keys() & reported.keys()
    assert all(reported.values())
    for path, line in lines.items():
        if line["class"] in _REPORTED:
            assert path in reported, path
        elif line["class"] in _PICTURES:
            assert path in found, (path, reported.get(path))
        if path in found:
            image: Pixels = found[path]
            try:
                wanted = decode((folder / path).read_bytes())
            except SampleError:
                pytest.fail(f"{path} was packed although it can't be decoded")
            assert np.array_equal(image, wanted), path
            if "upright" in line:
                assert image.shape == (line["upright"]["height"], line["upright"]["width"], 3)
            elif "pixels" in line and line["class"] == "clean":
                assert image.shape == (line["pixels"]["height"], line["pixels"]["width"], 3)
