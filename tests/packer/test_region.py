"""`--image region`, from the source to the reader."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from packer.convert import convert
from packer.image_policy import Decode, Keep, Region, Resize
from packer.options import ConvertOptions
from packer.sources.opening import open_source
from packer.verify import verify
from readers.checksum import digest, file_checksum
from readers.dataset import Dataset
from readers.decode import decode
from readers.errors import CorruptDatasetError, MissingDependencyError, OptionError
from readers.manifest import MANIFEST, SEGMENTS, Manifest
from readers.opening import open_dataset
from readers.sample import Sample
from readers.segments import SCHEMA
from tests.conftest import Run
from tests.trees import PLAIN, MemorySource, a_sample, contents, image_bytes, jpeg, turned

pytest.importorskip("numba")


def _png() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (5, 4)).save(out, "PNG")
    return out.getvalue()


_REWRITTEN = [a_sample(n, f"r{n}", turned(jpeg(n, 0, 60, 90), 1 + n % 8)) for n in range(7)]
_KEPT = [
    a_sample(8, "cmyk", jpeg(8, mode="CMYK")),
    a_sample(9, "junk", jpeg(9)[:-2] + b"junk\xff\xd9"),
    a_sample(10, "png", _png()),
]
_SOURCE = MemorySource([*_REWRITTEN[:3], *_KEPT, *_REWRITTEN[3:]], ("x",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "region"
    options = ConvertOptions(image=Region(), shard_samples=3)
    convert(_SOURCE, target, format=PLAIN.name, options=options)
    return target


def reseal(path: Path, change: Callable[[Manifest], Manifest]) -> None:
    """Changes a dataset's manifest, checksum included."""
    with open_dataset(path) as dataset:
        manifest = dataset.manifest
    (path / MANIFEST).write_text(change(manifest).to_json(), encoding="utf-8")


def plant(path: Path, lists: list[list[int]], schema: pa.Schema = SCHEMA) -> None:
    """Replaces the restart segments of a dataset, checksums included."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        column = pa.array(lists, schema[0].type)
        writer.write_batch(pa.record_batch([column], schema=schema))
    data = sink.getvalue().to_pybytes()
    (path / SEGMENTS).write_bytes(data)

    def change(manifest: Manifest) -> Manifest:
        assert manifest.segments is not None
        checksum = file_checksum([digest(data)])
        return replace(
            manifest, segments=replace(manifest.segments, bytes=len(data), checksum=checksum)
        )

    reseal(path, change)


def lists_of(path: Path) -> list[list[int]]:
    with open_dataset(path) as dataset:
        return [[] if s.segments is None else s.segments.tolist() for s in dataset]


def test_pictures_stay_and_what_cannot_be_rewritten_is_kept_and_named(path: Path) -> None:
    with open_dataset(path) as dataset:
        for sample, original in zip(dataset, _SOURCE.samples, strict=True):
            assert np.array_equal(decode(image_bytes(sample)), decode(image_bytes(original)))
            if sample.key in {"cmyk", "junk", "png"}:
                assert sample.image == original.image
                assert sample.segments is None
            else:
                assert sample.segments is not None
                assert sample.image != original.image
        reasons = {item.path: (item.action, item.reason) for item in dataset.manifest.ledger}
        assert reasons == {
            "cmyk.jpg": ("noted", "not rewritten, kept as it is: CMYK"),
            "junk.jpg": (
                "noted",
                "not rewritten, kept as it is: damaged: bytes left over among the coded pixels",
            ),
        }
        assert dataset.segments is not None
        assert dataset.segments.rewritten == len(_REWRITTEN)
    assert verify(path).faults == []


def test_each_way_to_read_gives_the_segments(path: Path) -> None:
    with open_dataset(path) as dataset, open_dataset(path, copy=False) as views:
        many = dataset.read_many([9, 3, 0])
        for sample, again in zip(many, (views[9], views[3], views[0]), strict=True):
            one = pickle.loads(pickle.dumps(sample))  # noqa: S301 - our own
            assert (one.segments is None) == (sample.segments is None) == (again.segments is None)
            if sample.segments is not None and again.segments is not None:
                assert sample.segments.dtype == np.uint16
                assert one.segments.tolist() == sample.segments.tolist() == again.segments.tolist()
                assert len(pickle.dumps(sample)) < len(image_bytes(sample)) + 1000
        assert len(pickle.dumps(dataset)) < 1000


def test_region_again_and_keep_change_nothing(path: Path, tmp_path: Path) -> None:
    for policy in (Region(), Keep(), Keep(check="decode")):
        target = tmp_path / str(policy)
        options = ConvertOptions(image=policy, shard_samples=3)
        convert(open_source(path), target, format=PLAIN.name, options=options)
        before, after = contents(path), contents(target)
        for made in (before, after):
            del made[MANIFEST]
        assert before == after


def test_other_policies_leave_the_segments_behind(path: Path, tmp_path: Path) -> None:
    for policy, to in ((Resize(side=90, by="longer"), "webdataset"), (Decode(), "npy")):
        options = ConvertOptions(image=policy)
        convert(open_source(path), tmp_path / to, format=to, options=options)
        assert not (tmp_path / to / SEGMENTS).exists()
        assert not any(lists_of(tmp_path / to))


def test_what_holds_pixels_is_refused(tmp_path: Path) -> None:
    options = ConvertOptions(image=Region())
    with pytest.raises(OptionError, match="format npy holds pixels"):
        convert(_SOURCE, tmp_path / "o", format="npy", options=options)
    pixels = MemorySource([a_sample(0)], pixels=True)
    with pytest.raises(OptionError, match="the source holds pixels"):
        convert(pixels, tmp_path / "o", format="webdataset", options=options)


def test_the_command_packs_verifies_and_tells(tmp_path: Path, run: Run) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for sample in _SOURCE.samples:
        (tree / sample.path).write_bytes(image_bytes(sample))
    target = tmp_path / "o"
    arguments = ("convert", tree, target, "--format", PLAIN.name, "--image", "region")
    assert json.loads(run(*arguments, "--dry-run", "--json").out)["samples"] == 10
    told = run(*arguments)
    assert told.status == 0, told.err
    assert "7 rewritten" in told.out
    assert "2 noted" in told.out
    assert run("verify", target, "--against", tree).status == 0
    assert json.loads(run("inspect", target, "--json").out)["rewritten"] == 7
    sample = json.loads(run("inspect", target, 3, "--json").out)
    assert sample["key"] == "r0"
    assert (sample["segments"], sample["MCUs each"]) == (4, 6)
    (tree / "r3.jpg").write_bytes(turned(jpeg(1, 0, 60, 90), 1))
    (tree / "cmyk.jpg").write_bytes(jpeg(8, mode="CMYK") + b" ")
    told = run("verify", target, "--against", tree)
    assert told.status == 1
    for key in ("r3", "cmyk"):
        assert f"sample {key!r}: differs from the source in image" in told.out
    assert "2 differences" in told.out


_Lists = list[list[int]]


def _moved(lists: _Lists) -> _Lists:
    lists[0][0], lists[0][1] = lists[0][0] + 1, lists[0][1] - 1
    return lists


_PLANTED: dict[str, tuple[Callable[[_Lists], _Lists], str, str]] = {
    "moved": (_moved, "r0", "don't end where its restart markers are"),
    "one missing": (lambda all_: [all_[0][1:], *all_[1:]], "r0", "don't end where"),
    "beyond the end": (lambda all_: [[*all_[0], 60_000], *all_[1:]], "r0", "don't end where"),
    "zeros": (lambda all_: [[0], *all_[1:]], "r0", "don't end where"),
    "of a PNG": (lambda all_: [*all_[:5], [9], *all_[6:]], "png", "is no JPEG"),
    "of a CMYK": (lambda all_: [*all_[:3], [9], *all_[4:]], "cmyk", "a head that was never"),
}


@pytest.mark.parametrize(("change", "key", "said"), _PLANTED.values(), ids=_PLANTED)
def test_verify_finds_segments_of_another_image(
    path: Path, change: Callable[[_Lists], _Lists], key: str, said: str
) -> None:
    plant(path, change(lists_of(path)))
    (fault,) = verify(path).faults
    assert (fault.file, fault.key) == (SEGMENTS, key)
    assert said in fault.reason


def test_damaged_segments_are_never_used(path: Path) -> None:
    whole = (path / SEGMENTS).read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for data in (bytes(flipped), whole[:-1]):
        (path / SEGMENTS).write_bytes(data)
        with open_dataset(path) as dataset, pytest.raises(CorruptDatasetError, match=SEGMENTS):
            dataset[0]
        assert any(fault.file == SEGMENTS for fault in verify(path).faults)
    (path / SEGMENTS).unlink()
    with open_dataset(path) as dataset, pytest.raises(CorruptDatasetError, match="is missing"):
        dataset.read_many([1])


def test_a_table_of_another_shape_is_refused(path: Path) -> None:
    lists = lists_of(path)
    wide = pa.schema([pa.field("segments", pa.large_list(pa.uint32()), nullable=False)])
    for planted, schema in ((lists[:-1], SCHEMA), (lists, wide)):
        plant(path, planted, schema)
        with open_dataset(path) as dataset, pytest.raises(CorruptDatasetError, match=SEGMENTS):
            dataset[0]


def test_offsets_that_point_elsewhere_are_refused(path: Path) -> None:
    data = bytearray((path / SEGMENTS).read_bytes())
    starts = np.cumsum([0, *(len(one) for one in lists_of(path))]).astype(np.int64)
    at = bytes(data).index(starts.tobytes())
    for bad in (-1, 1 << 40):
        data[at + 8 : at + 16] = bad.to_bytes(8, "little", signed=True)
        (path / SEGMENTS).write_bytes(data)
        with open_dataset(path, check="never") as dataset:
            with pytest.raises(CorruptDatasetError, match="row 0 lies outside"):
                dataset[0]
            assert isinstance(dataset[9], Sample)


def test_without_numba_it_says_what_to_install(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reading needs none, and neither do the checks."""
    code = "import sys; sys.modules['numba'] = None\nfrom packer.cli import main; main()"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}

    def packer(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert packer("verify", path, "--against", path).returncode == 0
    assert packer("inspect", path, 0).returncode == 0
    options = ("--format", "webdataset", "--image", "region")
    done = packer("convert", path, tmp_path / "o", *options)
    assert done.returncode == 1
    assert "pip install 'dataset-packer[region]'" in done.stderr
    assert issubclass(MissingDependencyError, ImportError)
    monkeypatch.undo()


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    """As in a read-only installation, for a user without a home."""
    root = Path(__file__).parents[2]
    package = tmp_path / "site" / "packer" / "recode"
    package.mkdir(parents=True)
    code = (
        "import numba.core.caching as caching\n"
        "caching.CacheImpl._locator_classes = []\n"
        "from packer.recode.huffman import optimal_table\n"
        "import numpy as np\n"
        "counts = np.zeros(256, np.int64); counts[7] = 1\n"
        "table, codes = np.zeros(272, np.uint8), np.zeros(256, np.int64)\n"
        "print(optimal_table(counts, table, codes), codes[7])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["17", str(1 << 32)]


def test_threads_that_begin_at_once_agree() -> None:
    """The kernel is compiled when it is loaded, whoever loads it first."""
    code = (
        "import threading\n"
        "from packer.recoding import load_recode\n"
        "from tests.trees import jpeg\n"
        "made = []\n"
        "def work(): made.append(load_recode()(jpeg(1), max_pixels=None).jpeg)\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]\n"
        "print(len(made), len(set(made)))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["8", "1"]


def test_a_dataset_of_which_nothing_was_rewritten(tmp_path: Path) -> None:
    options = ConvertOptions(image=Region())
    convert(MemorySource(_KEPT, ("x",)), tmp_path / "o", format=PLAIN.name, options=options)
    assert verify(tmp_path / "o").faults == []
    with open_dataset(tmp_path / "o") as dataset:
        assert [sample.segments for sample in dataset] == [None] * len(_KEPT)
        assert dataset.segments is not None
        assert dataset.segments.rewritten == 0


def test_a_reader_of_another_region_dataset_is_told_apart(path: Path) -> None:
    """Segments belong to what a dataset is: other ones make another source."""
    before = open_source(path).fingerprint
    plant(path, [[1], *lists_of(path)[1:]])
    assert open_source(path).fingerprint != before
    assert isinstance(open_dataset(path), Dataset)
