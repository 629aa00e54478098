"""Every case from public bug reports for these formats, through the command, in every format.

The cases are made by the project's folder beside the repository, and aren't part of it. What a
case wants of readers and of interrupted runs is tested for every format in `conformance/`, what it
wants of sources alone in `test_cases_sources.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from readers.dataset import Dataset
from readers.decode import decode
from readers.header import image_type
from readers.opening import open_dataset
from readers.sample import Pixels, Sample
from tests.conftest import COMMAND, Result, Run
from tests.trees import PACKINGS, Packing, image_bytes

_MAKER = Path(__file__).parents[2] / "shared/cases/make_cases.py"
_TREES = {
    "B01": "lmdb_mapfull",
    "B03": "reader_pickled",
    "B04": "fork_after_open",
    "B05": "read_only_place",
    "B07": "apparent_size",
    "B08": "key_over_511_bytes",
    "B10": "length_with_metadata",
    "B12": "dots_in_names",
    "B13": "suffix_case",
    "B14": "same_name_two_folders",
    "B17": "names_over_100",
    "B19": "fewer_shards_than_workers",
    "B20": "stream_not_repeated",
    "B27": "unicode_names",
    "B29": "blanks_and_quotes",
    "B30": "hdf5_shared_handle",
    "B33": "killed_half_way",
    "B35": "nul_bytes_inside",
    "B37": "mixed_sizes",
    "B38": "few_file_handles",
    "B46": "bytes_untouched",
    "B47": "class_order",
    "B50": "mac_and_windows_litter",
    "B55": "gray_in_batch",
    "B57": "links",
    "B62": "interrupted",
    "B63": "disk_full",
    "B64": "same_output_twice",
}
_MORE = ("B16", "B21", "B22", "B25", "B42", "B44", "B45", "B49", "B51", "B53", "B54", "B56")
_OFF_THE_RULE = {"cat.v1/.hidden.jpg"}
"""Samples that a case lists and leaves to us: a file whose name starts with a dot is none."""

pytestmark = pytest.mark.skipif(not _MAKER.exists(), reason="the cases aren't here")

with_pixels = pytest.mark.parametrize(
    "format", [one for one in PACKINGS if one.pixels], ids=str, indirect=True, scope="session"
)
with_files = pytest.mark.parametrize(
    "format", [one for one in PACKINGS if not one.pixels], ids=str, indirect=True, scope="session"
)


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cases")
    arguments = [sys.executable, str(_MAKER), str(out), "--only", *_TREES, *_MORE]
    subprocess.run(arguments, check=True, capture_output=True)
    return out


def expected(case: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((case / "expect.json").read_text(encoding="utf-8"))
    return found


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def stored_as(samples: list[dict[str, Any]], tree: Path, format: Packing) -> dict[str, Any]:
    """Gives label and digest of what is to be stored, by path."""
    found = {}
    for sample in samples:
        data = Path(os.fsdecode(os.fsencode(tree / sample["path"]))).read_bytes()
        assert sha256(data) == sample["sha256"]
        found[sample["path"]] = (sample["label"], sha256(format.stored(data)))
    return found


def held(dataset: Dataset) -> dict[str, Any]:
    samples = [*dataset]
    assert len({sample.key for sample in samples}) == len(samples) == len(dataset)
    return {sample.path: (sample.label, sha256(image_bytes(sample))) for sample in samples}


@pytest.mark.parametrize("case", _TREES.values(), ids=_TREES)
def test_a_tree_is_packed_whole(
    cases: Path, tmp_path: Path, run: Run, format: Packing, case: str
) -> None:
    tree, expect = cases / case / "tree", expected(cases / case)
    told = run("convert", tree, tmp_path / "o", *format.arguments, "--shard-samples", 10, "-q")
    assert told.status == 0, told.err
    samples = [one for one in expect["samples"] if one["path"] not in _OFF_THE_RULE]
    with open_dataset(tmp_path / "o") as dataset:
        assert dataset.classes == tuple(expect["classes"])
        assert held(dataset) == stored_as(samples, tree, format)
        ledger = {entry.path for entry in dataset.manifest.ledger}
        litter = dataset.manifest.source["litter"]
    silent = [path for path in expect["ignored"] if not ledger & {path, path.partition("/")[0]}]
    assert len(silent) <= int(str(litter))
    assert run("verify", tmp_path / "o", "--against", tree, "-q").status == 0


@with_files
def test_b07_files_are_hardly_larger_than_their_content(
    cases: Path, tmp_path: Path, run: Run, format: Packing
) -> None:
    tree = cases / "apparent_size/tree"
    assert run("convert", tree, tmp_path / "o", *format.arguments).status == 0
    given = sum(file.stat().st_size for file in tree.rglob("*.jpg"))
    made = [file.stat() for file in (tmp_path / "o").iterdir()]
    assert sum(status.st_size for status in made) <= 1.1 * given + 64 * 1024
    assert all(status.st_blocks * 512 >= status.st_size for status in made)


def test_b10_the_length_is_the_number_of_images(
    cases: Path, tmp_path: Path, run: Run, format: Packing
) -> None:
    tree = cases / "length_with_metadata/tree"
    assert json.loads(run("convert", tree, tmp_path / "o", *format.arguments, "--json").out)[
        "samples"
    ] == len(open_dataset(tmp_path / "o"))
    keys = {}
    for index in (0, 6, -1, -7):
        keys[index] = json.loads(run("inspect", tmp_path / "o", index, "--json").out)["key"]
    assert keys[6] == keys[-1] != keys[0] == keys[-7]
    for index in (7, -8):
        assert run("inspect", tmp_path / "o", index).status == 2


@with_files
def test_b16_missing_fields_are_named(
    cases: Path, tmp_path: Path, run: Run, format: Packing
) -> None:
    shard = cases / "tar_missing_field/shard-000000.tar"
    told = run("convert", shard, tmp_path / "o", *format.arguments, "-q")
    assert told.status == 1
    assert all(word in told.err for word in ("shard-000000.tar", "000002", "cls"))
    told = run("convert", shard, tmp_path / "o", *format.arguments, "--on-error", "skip", "--json")
    assert told.status == 0, told.err
    assert (json.loads(told.out)["samples"], json.loads(told.out)["skipped"]) == (5, 2)
    with open_dataset(tmp_path / "o") as dataset:
        labels = {sample.key: sample.label for sample in dataset}
        reasons = [entry.reason for entry in dataset.manifest.ledger if entry.action == "skipped"]
    assert labels == expected(shard.parent)["expected_labels"]
    assert len(reasons) == 2
    assert all(reasons)


@with_files
@pytest.mark.parametrize("name", ["cut-in-data", "cut-in-header", "no-end-blocks", "whole"])
def test_b21_a_cut_shard_gives_whole_samples(
    cases: Path, tmp_path: Path, run: Run, format: Packing, name: str
) -> None:
    shard = cases / f"tar_truncated/{name}.tar"
    arguments = ("convert", shard, tmp_path / "o", *format.arguments)
    if name.startswith("cut"):
        told = run(*arguments, "-q")
        assert told.status == 1
        assert f"{name}.tar" in told.err
        assert "offset" in told.err
    assert run(*arguments, "--on-error", "skip", "-q").status == 0
    with open_dataset(tmp_path / "o") as dataset:
        labels = [sample.label for sample in dataset]
        assert labels == ([0, 1, 2] if name.startswith("cut") else [0, 1, 2, 3, 4])
        assert [sample.key for sample in dataset] == [f"{label:06d}" for label in labels]
        assert bool(dataset.manifest.ledger) == (name != "whole")


def test_b22_nothing_to_pack_is_told_in_words(
    cases: Path, tmp_path: Path, run: Run, format: Packing
) -> None:
    told = run("convert", cases / "empty_shards/set", tmp_path / "o", *format.arguments, "-q")
    assert told.status == 0, told.err
    with open_dataset(tmp_path / "o") as dataset:
        assert [sample.label for sample in dataset] == [0, 1]
        assert [entry.path for entry in dataset.manifest.ledger] == ["shard-000002.tar"]
    for name in ("tree", "tree_nothing"):
        told = run(
            "convert", cases / "empty_shards" / name, tmp_path / "n", *format.arguments, "-q"
        )
        assert (told.status, len(told.err.splitlines())) == (1, 1)
        assert "no files" in told.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["o"]


def test_b25_a_smaller_run_leaves_nothing_of_the_larger(
    cases: Path, tmp_path: Path, run: Run, format: Packing
) -> None:
    big, small = (cases / "stale_shards" / name for name in ("tree_big", "tree_small"))
    more = (tmp_path / "o", *format.arguments, "--shard-samples", 10, "-q")
    assert run("convert", big, *more).status == 0
    assert run("convert", small, *more).status == 1
    assert run("verify", tmp_path / "o", "--against", big, "-q").status == 0
    with open_dataset(tmp_path / "o") as old:
        old[0]
        assert run("convert", small, *more, "--overwrite").status == 0
        assert len(old) == 60
    told = run("verify", tmp_path / "o", "--against", small, "--json")
    assert (told.status, json.loads(told.out)["compared"]) == (0, 16)
    assert not list((tmp_path / "o").glob("shard-000002*"))


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_b27_names_stay_in_every_locale(cases: Path, tmp_path: Path, locale: str) -> None:
    tree, expect = cases / "unicode_names/tree", expected(cases / "unicode_names")
    for format in PACKINGS:
        target = tmp_path / str(format)
        arguments = [*COMMAND, "convert", str(tree), str(target), *format.arguments, "-q"]
        environment = {"PATH": os.environ["PATH"], "LC_ALL": locale, "PYTHONCOERCECLOCALE": "0"}
        subprocess.run(arguments, env=environment, check=True)
        with open_dataset(target) as dataset:
            assert held(dataset) == stored_as(expect["samples"], tree, format)
            assert dataset.classes == tuple(expect["classes"])


@with_pixels
def test_b37_mixed_sizes_need_no_pickle(
    cases: Path, tmp_path: Path, run: Run, format: Packing
) -> None:
    tree, expect = cases / "mixed_sizes/tree", expected(cases / "mixed_sizes")
    assert run("convert", tree, tmp_path / "m", *format.arguments).status == 0
    with open_dataset(tmp_path / "m") as dataset:
        assert [list(pixels(sample).shape) for sample in dataset] == expect["shapes"]
        assert dataset.manifest.shape is None
    assert run("convert", tree, tmp_path / "f", *format.arguments, "--size", 32).status == 0
    with open_dataset(tmp_path / "f") as dataset:
        assert dataset.manifest.shape == (32, 32, 3)
        assert np.stack([pixels(sample) for sample in dataset]).shape == (7, 32, 32, 3)
    for file in tmp_path.rglob("*.npy"):
        assert np.load(file, allow_pickle=False).dtype.kind in "iu"


def pixels(sample: Sample) -> Pixels:
    assert isinstance(sample.image, np.ndarray)
    assert sample.image.dtype == np.uint8
    return sample.image


def test_b38_few_files_are_open_while_packing(cases: Path, tmp_path: Path, format: Packing) -> None:
    tree = cases / "few_file_handles/tree"
    code = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); " + COMMAND[2]
    arguments = ["convert", str(tree), str(tmp_path / "o"), *format.arguments, "-q"]
    limited = [sys.executable, "-c", code, *arguments, "--shard-samples", "10", "--workers", "8"]
    done = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with open_dataset(tmp_path / "o") as dataset:
        assert len(dataset.manifest.shards) == 30


def test_b45_the_type_goes_by_the_content(
    cases: Path, tmp_path: Path, run: Run, format: Packing
) -> None:
    tree, expect = cases / "mixed_content/tree", expected(cases / "mixed_content")
    told = run("convert", tree, tmp_path / "o", *format.arguments, "--json")
    assert told.status == 0, told.err
    with open_dataset(tmp_path / "o") as dataset:
        assert held(dataset) == stored_as(expect["samples"], tree, format)
        if format.pixels:
            assert all(pixels(sample).ndim == 3 for sample in dataset)
            return
        types = Counter(image_type(image_bytes(sample)) for sample in dataset)
        assert dict(dataset.manifest.types) == json.loads(told.out)["types"] == dict(types)
        assert types == {"jpeg": 3, "png": 2, "gif": 1, "webp": 1}


@with_files
def test_b42_no_tool_reads_much_for_one_image(
    cases: Path, tmp_path: Path, run: Run, format: Packing
) -> None:
    tree = cases / "row_group_bytes/tree"
    for more in ((), ("--shard-size", "4MB")):
        told = run("convert", tree, tmp_path / "o", *format.arguments, *more, "--overwrite")
        assert told.status == 0, told.err
        with open_dataset(tmp_path / "o") as dataset:
            files = [dataset.root / shard.name for shard in dataset.manifest.shards]
            assert held(dataset) == stored_as(expected(tree.parent)["samples"], tree, format)
        assert all(file.stat().st_size < 4_100_000 for file in files) or not more
        for file in files:
            assert max(_bytes_of_parts(file, format.name), default=0) <= 16 << 20


def _bytes_of_parts(file: Path, format: str) -> list[int]:
    """Gives the bytes that tools read at once: of row groups or record batches."""
    if format == "parquet":
        metadata = pq.read_metadata(file)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        return [group.total_byte_size for group in groups]
    if format == "arrow":
        reader = pa.ipc.open_file(pa.memory_map(str(file)))
        return [reader.get_batch(number).nbytes for number in range(reader.num_record_batches)]
    return []


_RECORDS = {
    "whole": (6, ""),
    "cut": (4, "breaks off"),
    "bit-flip": (2, "doesn't match its checksum"),
    "length-flip": (2, "doesn't match its checksum"),
}
"""How many records of a file can be read, and what is said of the next one."""


@pytest.mark.parametrize("name", _RECORDS)
def test_b44_a_damaged_record_is_named(cases: Path, tmp_path: Path, run: Run, name: str) -> None:
    good, said = _RECORDS[name]
    pytest.importorskip("crc32c")
    file = cases / f"tfrecord_damage/{name}.tfrecord"
    offset = expected(file.parent)["offsets_of_records"][min(good, 5)]
    arguments = ("convert", file, tmp_path / "o", "--format", "webdataset")
    told = run(*arguments, "-q")
    assert told.status == (1 if said else 0)
    if said:
        assert said in told.err
        assert f"{name}.tfrecord: sample {good} " in told.err
        assert f"offset {offset}" in told.err
    assert run(*arguments, "--on-error", "skip", "--overwrite", "-q").status == 0
    with open_dataset(tmp_path / "o") as dataset:
        labels = [sample.label for sample in dataset]
    after = [0, 1, 2] if name == "bit-flip" else []  # their lengths are whole
    assert labels == [n % 3 for n in range(good)] + after


def test_b44_an_empty_file_is_told_in_words(cases: Path, tmp_path: Path, run: Run) -> None:
    pytest.importorskip("crc32c")
    file = cases / "tfrecord_damage/empty.tfrecord"
    told = run("convert", file, tmp_path / "o", "--format", "webdataset", "-q")
    assert (told.status, len(told.err.splitlines())) == (1, 1)
    assert "empty file" in told.err


@with_files
def test_b46_reencoding_is_asked_for_and_noted(
    cases: Path, tmp_path: Path, run: Run, format: Packing
) -> None:
    tree = cases / "bytes_untouched/tree"
    more = ("--image", "reencode", "--quality", 71, "--subsampling", "444")
    target = tmp_path / "o"
    assert run("convert", tree, target, "--format", format.name, *more).status == 0
    with open_dataset(target) as dataset:
        policy = dataset.manifest.options["image"]
        assert isinstance(policy, dict)
        assert (policy["name"], policy["quality"], policy["subsampling"]) == ("reencode", 71, "444")
        assert all(b"Exif" not in image_bytes(sample) for sample in dataset)


def test_b49_an_empty_class_keeps_its_number(
    cases: Path, tmp_path: Path, run: Run, format: Packing
) -> None:
    case = cases / "empty_class"
    source = tmp_path / "both"
    for split in ("train", "val"):
        shutil.copytree(case / split, source / split)
    told = run("convert", source, tmp_path / "o", *format.arguments, "-q")
    assert told.status == 0, told.err
    for split in ("train", "val"):
        with open_dataset(tmp_path / "o" / split) as dataset:
            assert dataset.classes == ("ant", "bee", "cat", "dog")
            assert {s.label for s in dataset if s.path.startswith("cat/")} == {2}
            if split == "val":
                assert {sample.label for sample in dataset} == {0, 2}
                ledger = {entry.path for entry in dataset.manifest.ledger}
                assert {"__pycache__", ".ipynb_checkpoints", "dog/readme.txt"} <= ledger


def test_b51_few_bad_among_many(cases: Path, tmp_path: Path, run: Run, format: Packing) -> None:
    tree, expect = cases / "few_bad_among_many/tree", expected(cases / "few_bad_among_many")
    bad = {sample["path"] for sample in expect["samples"] if sample["status"] == "bad"}
    arguments = ("convert", tree, tmp_path / "o", *format.arguments, "--workers", 3)
    told = run(*arguments, "-q")
    assert told.status == 1
    assert sum(name in told.err for name in bad) == 1
    assert len(told.err.splitlines()) == 1
    told = run(*arguments, "--on-error", "skip", "--json")
    assert (json.loads(told.out)["samples"], json.loads(told.out)["skipped"]) == (47, 3)
    with open_dataset(tmp_path / "o") as dataset:
        good = [sample for sample in expect["samples"] if sample["path"] not in bad]
        assert held(dataset) == stored_as(good, tree, format)
        ledger = {e.path: e.reason for e in dataset.manifest.ledger if e.action == "skipped"}
    assert ledger.keys() == bad
    assert all(ledger.values())
    told = run(*arguments, "--on-error", "keep", "--overwrite", "--json")
    if format.pixels:
        assert told.status == 2
        return
    assert (json.loads(told.out)["samples"], json.loads(told.out)["kept"]) == (50, 3)
    with open_dataset(tmp_path / "o") as dataset:
        assert held(dataset) == stored_as(expect["samples"], tree, format)
        assert {e.path for e in dataset.manifest.ledger if e.action == "kept"} == bad
    assert run("verify", tmp_path / "o", "--against", tree, "-q").status == 0


def upright(dataset: Dataset) -> list[Pixels]:
    return [
        sample.image if isinstance(sample.image, np.ndarray) else decode(bytes(sample.image))
        for sample in dataset
    ]


def packed_as_pixels_or_jpeg(run: Run, tree: Path, target: Path, format: Packing) -> Result:
    """Packs so that pixels are made: decoded, or encoded again."""
    policy = ("--image", "decode") if format.pixels else ("--image", "reencode", "--quality", 95)
    return run("convert", tree, target, "--format", format.name, *policy)


def test_b53_cmyk_has_its_colours(cases: Path, tmp_path: Path, run: Run, format: Packing) -> None:
    tree = cases / "cmyk_colour/tree"
    assert packed_as_pixels_or_jpeg(run, tree, tmp_path / "o", format).status == 0
    with open_dataset(tmp_path / "o") as dataset:
        for sample, picture in zip(dataset, upright(dataset), strict=True):
            wanted = np.array([*bytes.fromhex(sample.key.rpartition("_")[2])])
            assert np.abs(picture.mean(axis=(0, 1)) - wanted).max() < 25


def test_b54_the_turn_is_made_once(cases: Path, tmp_path: Path, run: Run, format: Packing) -> None:
    tree = cases / "eight_turns/tree"
    assert packed_as_pixels_or_jpeg(run, tree, tmp_path / "o", format).status == 0
    with open_dataset(tmp_path / "o") as dataset:
        pictures = [picture.astype(int) for picture in upright(dataset)]
        assert set(dataset.index.orientations.tolist()) == {1}
    assert {picture.shape for picture in pictures} == {(48, 80, 3)}
    assert max(np.abs(picture - pictures[0]).mean() for picture in pictures) < 4
    if not format.pixels:
        assert run("convert", tree, tmp_path / "k", *format.arguments).status == 0
        with open_dataset(tmp_path / "k") as dataset:
            assert dataset.index.orientations.tolist() == [*range(1, 9)]
            assert dataset.index.widths.tolist() == [80] * 4 + [48] * 4


@with_pixels
def test_b55_gray_has_three_channels(
    cases: Path, tmp_path: Path, run: Run, format: Packing
) -> None:
    tree = cases / "gray_in_batch/tree"
    assert run("convert", tree, tmp_path / "o", *format.arguments, "--size", 32).status == 0
    with open_dataset(tmp_path / "o") as dataset:
        batch = np.stack([pixels(sample) for sample in dataset])
    assert batch.shape == (8, 32, 32, 3)
    gray = [bool((one == one[..., :1]).all()) for one in batch]
    assert gray == [n in {0, 3, 7} for n in range(8)]


def test_b56_bombs_are_told_from_large_pictures(
    cases: Path, tmp_path: Path, run: Run, format: Packing
) -> None:
    tree = cases / "bomb_and_large/tree"
    if not format.pixels:
        assert run("convert", tree, tmp_path / "o", *format.arguments).status == 0
        assert len(open_dataset(tmp_path / "o")) == 3
        return
    code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31)); "
    arguments = ["convert", str(tree), str(tmp_path / "o"), *format.arguments, "--on-error", "skip"]
    done = subprocess.run(
        [sys.executable, "-c", code + COMMAND[2], *arguments, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (json.loads(done.stdout)["samples"], json.loads(done.stdout)["skipped"]) == (1, 2)
    with open_dataset(tmp_path / "o") as dataset:
        ledger = {entry.path: entry.reason for entry in dataset.manifest.ledger}
    assert ledger.keys() == {"a/bomb_30000x30000.jpg", "a/bomb_65500x65500.jpg"}
    assert all("over the limit" in reason for reason in ledger.values())
    more = ("--max-pixels", 3000, "--on-error", "skip", "--overwrite", "-q")
    told = run("convert", tree, tmp_path / "o", *format.arguments, *more)
    assert told.status == 1
    assert "none of 3" in told.err
