"""The sources against inputs from public bug reports, where the project's folder has them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from packer.protocols import PackSource
from packer.sources.opening import open_source
from readers.errors import NotAnImageError, SampleError, SourceError
from readers.sample import Sample

_MAKER = Path(__file__).parents[2] / "shared/cases/make_cases.py"
_TREES = {
    "B08": "key_over_511_bytes/tree",
    "B12": "dots_in_names/tree",
    "B13": "suffix_case/tree",
    "B14": "same_name_two_folders/tree",
    "B17": "names_over_100/tree",
    "B27": "unicode_names/tree",
    "B29": "blanks_and_quotes/tree",
    "B47": "class_order/tree",
    "B49": "empty_class/val",
    "B50": "mac_and_windows_litter/tree",
    "B57": "links/tree",
}

pytestmark = pytest.mark.skipif(not _MAKER.exists(), reason="the cases aren't here")


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cases")
    only = [*_TREES, "B16", "B21", "B22"]
    subprocess.run([sys.executable, _MAKER, out, "--only", *only], check=True, capture_output=True)
    return out


def _read(source: PackSource) -> tuple[list[Sample], list[SampleError]]:
    found = [_sample_or_error(source, index) for index in range(len(source))]
    samples = [sample for sample in found if isinstance(sample, Sample)]
    return samples, [error for error in found if isinstance(error, SampleError)]


def _sample_or_error(source: PackSource, index: int) -> Sample | SampleError:
    try:
        return source[index]
    except SampleError as error:
        return error


@pytest.mark.parametrize("tree", _TREES.values(), ids=_TREES)
def test_a_tree_gives_the_expected_samples(cases: Path, tree: str) -> None:
    expected = json.loads((cases / tree).parent.joinpath("expect.json").read_text())
    source = open_source(cases / tree)
    samples, errors = _read(source)
    left_out = {note.path for note in source.report.notes}
    assert source.classes == tuple(expected["classes"])
    assert len({sample.key for sample in samples}) == len(samples)
    found = {
        sample.path: (sample.label, hashlib.sha256(bytes(sample.image)).hexdigest())
        for sample in samples
    }
    assert found == {
        sample["path"]: (sample["label"], sample["sha256"])
        for sample in expected["samples"]
        if sample["path"] not in left_out
    }
    assert left_out & {sample["path"] for sample in expected["samples"]} <= {"cat.v1/.hidden.jpg"}
    assert all(isinstance(error, NotAnImageError) for error in errors)


def test_litter_is_counted(cases: Path) -> None:
    report = open_source(cases / "mac_and_windows_litter/tree").report
    expected = json.loads((cases / "mac_and_windows_litter/expect.json").read_text())
    assert report.litter + len(report.notes) == len(expected["ignored"])


def test_missing_fields_are_named_and_labels_stay(cases: Path) -> None:
    samples, errors = _read(open_source(cases / "tar_missing_field/shard-000000.tar"))
    expected = json.loads((cases / "tar_missing_field/expect.json").read_text())
    assert {sample.key: sample.label for sample in samples} == expected["expected_labels"]
    said = [(error.shard, error.key) for error in errors]
    assert said == [("shard-000000.tar", "000002"), ("shard-000000.tar", "000006")]


@pytest.mark.parametrize("name", ["cut-in-data", "cut-in-header", "no-end-blocks", "whole"])
def test_a_cut_shard_gives_its_whole_samples(cases: Path, name: str) -> None:
    source = open_source(cases / f"tar_truncated/{name}.tar")
    samples, errors = _read(source)
    if name.startswith("cut"):
        assert [sample.label for sample in samples] == [0, 1, 2]
        assert [error.key for error in errors] == ["000003"]
        assert f"{name}.tar" in errors[0].message
        assert f"offset {errors[0].offset}" in errors[0].message
    else:
        assert [sample.label for sample in samples] == [0, 1, 2, 3, 4]
        assert len(source.report.notes) == (name == "no-end-blocks")


@pytest.mark.parametrize("style", ["gnu", "pax"])
def test_long_names_of_either_flavour_are_read(cases: Path, style: str) -> None:
    samples, errors = _read(open_source(cases / f"names_over_100/foreign-{style}.tar"))
    assert [sample.key for sample in samples] == ["p" * 130 + f"/{i:03d}" for i in range(4)]
    assert not errors


def test_empty_inputs_are_told_in_words(cases: Path) -> None:
    source = open_source(cases / "empty_shards/set")
    assert [sample.label for sample in _read(source)[0]] == [0, 1]
    assert [note.path for note in source.report.notes] == ["shard-000002.tar"]
    for name in ("tree", "tree_nothing"):
        with pytest.raises(SourceError, match="holds no files"):
            open_source(cases / "empty_shards" / name)
