"""What a reader of every format promises: see `readers.protocols.Reader`."""

from __future__ import annotations

import gc
import json
import multiprocessing
import operator
import os
import pickle
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from packer.convert import convert
from packer.options import ConvertOptions
from packer.verify import verify
from readers.checksum import BLOCK_SIZE, digest, file_checksum
from readers.dataset import Dataset
from readers.decode import decode
from readers.errors import DatasetNotFoundError, PackError
from readers.index import COLUMNS, SCHEMA
from readers.manifest import File, Shard
from readers.opening import open_dataset
from readers.protocols import Reader, Source, SupportsReadMany, read_many
from readers.registry import FORMATS
from readers.sample import Sample
from tests.trees import MemorySource, Packing, a_sample, contents, image_bytes, jpeg

_ROWS = 40
_TIMEOUT = 60

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, format: Packing) -> Path:
    """A dataset of many small shards; not to be changed."""
    return pack(tmp_path_factory.mktemp("shards") / str(format), format, 0)


def pack(path: Path, format: Packing, first: int, rows: int = _ROWS, per_shard: int = 3) -> Path:
    samples = [
        a_sample(number, f"k/{number}", jpeg(first + number))._replace(label=number % 5)
        for number in range(rows)
    ]
    options = ConvertOptions(image=format.policy, shard_samples=per_shard)
    convert(MemorySource(samples, tuple("abcde")), path, format=format.name, options=options)
    return path


@pytest.fixture(scope="module")
def wanted(format: Packing) -> list[bytes]:
    return [format.stored(jpeg(number)) for number in range(_ROWS)]


@pytest.fixture(params=[True, False], ids=["copy", "view"])
def reader(request: pytest.FixtureRequest, path: Path) -> Iterator[Dataset]:
    with open_dataset(path, copy=request.param) as opened:
        yield opened


def test_keeps_the_protocol(reader: Dataset) -> None:
    assert isinstance(reader, Reader)
    assert isinstance(reader, Source)
    assert isinstance(reader, SupportsReadMany)


def test_counts_and_labels(reader: Dataset) -> None:
    assert len(reader) == _ROWS
    assert len(list(reader)) == len(list(reader)) == _ROWS
    assert reader.classes == tuple("abcde")
    assert reader.labels.dtype == np.int32
    assert reader.labels.tolist() == [row % 5 for row in range(_ROWS)]
    assert not reader.labels.flags.writeable
    assert reader.manifest.samples == _ROWS


@pytest.mark.parametrize("index", [_ROWS, -_ROWS - 1, 2**70, -(2**70)])
def test_an_index_out_of_range_is_an_index_error(reader: Dataset, index: int) -> None:
    with pytest.raises(IndexError):
        reader[index]
    with pytest.raises(IndexError):
        reader.read_many([0, index])


@pytest.mark.parametrize("index", [1.5, 1.0, "1", None, slice(0, 2)])
def test_what_is_no_integer_is_no_index(reader: Dataset, index: object) -> None:
    with pytest.raises(TypeError):
        reader[index]  # type: ignore[index]  # that is the point
    with pytest.raises(TypeError):
        reader.read_many([index])  # type: ignore[list-item]  # that is the point


def test_indices_may_be_negative_and_of_any_integer_type(
    reader: Dataset, wanted: list[bytes]
) -> None:
    for index in (-1, np.int64(-1), np.uint8(_ROWS - 1), np.int32(_ROWS - 1)):
        assert image_bytes(reader[operator.index(index)]) == wanted[-1]
        assert image_bytes(reader[index]) == wanted[-1]
    assert image_bytes(reader[-_ROWS]) == wanted[0]


@pytest.mark.parametrize(
    "indices",
    [
        [],
        [5, 2, 9, 2, 2],
        (0, _ROWS - 1),
        range(3, 30, 4),
        [-1, 0, -_ROWS],
        np.array([7, 3, 3], np.uint16),
        np.arange(_ROWS)[::-2],
        [np.int64(4), 2],
    ],
    ids=repr,
)
def test_reading_many_is_reading_each(reader: Dataset, indices: list[int]) -> None:
    many = reader.read_many(indices)
    assert [_plain(sample) for sample in many] == [_plain(reader[index]) for index in indices]
    assert [_plain(s) for s in read_many(reader, indices)] == [_plain(s) for s in many]


def _plain(sample: Sample) -> tuple[object, ...]:
    segments = None if sample.segments is None else sample.segments.tolist()
    return (sample.key, image_bytes(sample), *sample[2:-1], segments)


def test_a_closed_reader_says_so(path: Path) -> None:
    for use in (False, True):
        reader = open_dataset(path)
        if use:
            reader[0]
        reader.close()
        reader.close()
        uses: tuple[Callable[[], object], ...] = (
            partial(reader.__getitem__, 0),
            partial(reader.read_many, [0]),
            partial(getattr, reader, "labels"),
        )
        for read in uses:
            with pytest.raises(ValueError, match="closed"):
                read()
        assert len(reader) == _ROWS


def test_images_outlive_the_next_call_and_the_reader(path: Path, wanted: list[bytes]) -> None:
    for copy in (True, False):
        with open_dataset(path, copy=copy) as reader:
            held = [*reader, *reader.read_many(range(_ROWS))]
            labels = reader.labels
        del reader
        gc.collect()
        assert [image_bytes(sample) for sample in held] == wanted * 2
        assert labels[7] == 2


def test_two_readers_of_one_path_do_not_disturb_each_other(path: Path, wanted: list[bytes]) -> None:
    with open_dataset(path) as one:
        with open_dataset(path, copy=False) as other:
            for row in range(_ROWS):
                assert image_bytes(one[row]) == image_bytes(other[row - _ROWS]) == wanted[row]
        assert [image_bytes(sample) for sample in one] == wanted


def test_a_pickle_is_small_at_any_time(reader: Dataset, wanted: list[bytes]) -> None:
    before = pickle.dumps(reader)
    assert len(list(reader)) == _ROWS
    after = pickle.dumps(reader)
    assert max(len(before), len(after)) < 10_000
    for pickled in (before, after):
        with pickle.loads(pickled) as copy:  # noqa: S301 - our own
            assert [image_bytes(sample) for sample in copy] == wanted
            assert type(copy[0].image) is type(reader[0].image)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
def test_workers_of_every_kind_read_the_same(
    path: Path, wanted: list[bytes], method: str, *, used: bool
) -> None:
    with open_dataset(path) as reader:
        if used:
            reader[0]
        orders = [random.Random(seed).sample(range(_ROWS), _ROWS) for seed in range(2)]  # noqa: S311 - no secret
        with multiprocessing.get_context(method).Pool(2) as pool:
            handed = [pool.apply_async(_images, (reader, order)) for order in orders]
            found = [result.get(_TIMEOUT) for result in handed]
    assert found == [[wanted[row] for row in order] for order in orders]


def _images(reader: Dataset, rows: list[int]) -> list[bytes]:
    return [image_bytes(sample) for sample in reader.read_many(rows)]


def test_forked_processes_share_an_open_reader(reader: Dataset, wanted: list[bytes]) -> None:
    assert image_bytes(reader[0]) == wanted[0]
    children = [_forked(partial(_reads_right, reader, wanted, seed)) for seed in range(4)]
    assert _reads_right(reader, wanted, 9)
    assert [_status(child) for child in children] == [0] * 4
    assert image_bytes(reader[-1]) == wanted[-1]


def _reads_right(reader: Dataset, wanted: list[bytes], seed: int) -> bool:
    order = random.Random(seed)  # noqa: S311 - no secret
    rows = [row for _ in range(10) for row in order.sample(range(_ROWS), _ROWS)]
    return all(
        (image_bytes(sample), sample.label) == (wanted[row], row % 5)
        for start in range(0, len(rows), 8)
        for row, sample in zip(
            rows[start : start + 8], reader.read_many(rows[start : start + 8]), strict=True
        )
    )


def _forked(work: Callable[[], bool]) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.alarm(_TIMEOUT)
        status = 0 if work() else 1
    finally:
        os._exit(status)


def _status(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_threads_share_a_reader(path: Path, wanted: list[bytes]) -> None:
    for copy in (True, False):
        with open_dataset(path, copy=copy) as reader, ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda seed: _reads_right(reader, wanted, seed), range(8)))


_MANY_FILES = """
import os, random, resource, sys
from concurrent.futures import ThreadPoolExecutor
from readers import open_dataset
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
reader = open_dataset(sys.argv[1], copy=sys.argv[2] == "copy")
held, most = [], 0
def read(seed):
    order = list(range(len(reader)))
    random.Random(seed).shuffle(order)
    found = []
    for row in order:
        found.append((row, reader[row]))
        global most
        most = max(most, len(os.listdir("/proc/self/fd")))
    return found
with ThreadPoolExecutor(8) as pool:
    for found in pool.map(read, range(8)):
        held += found
child = os.fork()
read(1)
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
first = {}
for row, sample in held:
    assert bytes(memoryview(first.setdefault(row, sample.image))) == bytes(memoryview(sample.image))
assert most < 60, most
print(len(held))
"""


def test_few_files_are_open_at_once(tmp_path: Path, format: Packing) -> None:
    path = pack(tmp_path / "o", format, 0, 200, 2)
    for mode in ("copy", "view"):
        done = subprocess.run(
            [sys.executable, "-c", _MANY_FILES, str(path), mode],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT,
        )
        assert (done.stdout, done.stderr) == ("1600\n", "")


_FOREIGN = """
import os, sys
from readers import open_dataset
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for copy in (True, False):
    with open_dataset(sys.argv[1], copy=copy) as reader:
        print(sum(len(memoryview(sample.image).cast("B")) for sample in reader))
"""


def test_a_foreign_read_only_place_will_do(path: Path, wanted: list[bytes]) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.chmod(place, 0o755)  # noqa: PTH101, S103 - open to all users
        there = Path(shutil.copytree(path, Path(place) / "there"))
        before = contents(there)
        for file in there.iterdir():
            file.chmod(0o444)
        there.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", _FOREIGN, str(there)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == (f"{sum(map(len, wanted))}\n" * 2, "")
        assert contents(there) == before
        there.chmod(0o755)


_EPOCHS = """
import os, sys
from readers import open_dataset
def used():
    with open("/proc/self/smaps_rollup") as lines:
        kilobytes = sum(int(l.split()[1]) for l in lines if l.startswith(("Anonymous:",)))
    return kilobytes, len(os.listdir("/proc/self/fd"))
for copy in (True, False):
    reader = open_dataset(sys.argv[1], copy=copy, check="always")
    for epoch in range(60):
        for row in range(len(reader)):
            reader[row]
        reader.read_many(range(len(reader)))
        with open_dataset(sys.argv[1]) as other:
            other[0]
        if epoch == 20:
            before = used()
    after = used()
    assert after[1] == before[1], (before, after)
    assert after[0] <= before[0] + 1024, (before, after)
"""


def test_memory_and_files_stay_flat_over_epochs(path: Path) -> None:
    subprocess.run([sys.executable, "-c", _EPOCHS, str(path)], check=True, timeout=_TIMEOUT)


@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
def test_a_dataset_that_is_replaced_is_never_mixed(
    tmp_path: Path, format: Packing, wanted: list[bytes], *, used: bool
) -> None:
    path = pack(tmp_path / "o", format, 0)
    with open_dataset(path) as reader:
        if used:
            reader[0]
        pickled = pickle.dumps(reader)
        samples = [a_sample(n, f"k/{n}", jpeg(5000 + n)) for n in range(_ROWS)]
        options = ConvertOptions(image=format.policy, shard_samples=3, overwrite=True)
        convert(MemorySource(samples, ("x",)), path, format=format.name, options=options)
        for row in range(_ROWS):
            try:
                sample = reader[row]
            except PackError:
                continue
            assert (image_bytes(sample), sample.label) == (wanted[row], row % 5)
        with pytest.raises(PackError, match=r"replaced|changed"):
            pickle.loads(pickled)[0]  # noqa: S301 - our own
    with open_dataset(path) as fresh:
        assert image_bytes(fresh[3]) == format.stored(jpeg(5003))


def test_what_is_no_dataset_is_said(tmp_path: Path, path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "none", tmp_path / "file", tmp_path, tmp_path / "file" / "below"):
        with pytest.raises(DatasetNotFoundError):
            open_dataset(place)
    shutil.copytree(path, tmp_path / "parts" / "train")
    with pytest.raises(DatasetNotFoundError, match="train"):
        open_dataset(tmp_path / "parts")


_MILLION = 1_000_000


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of a million rows that share one image."""
    path = tmp_path_factory.mktemp("million") / "o"
    name = next(name for name, entry in FORMATS.items() if entry.encoded and not entry.needs)
    convert(MemorySource([a_sample(0)], ("x",)), path, format=name)
    with open_dataset(path) as small:
        manifest, index = small.manifest, small.index
        row = {
            "shard": 0,
            "offset": index.offsets.item(0),
            "length": index.lengths.item(0),
            "checksum": index.checksums[0].tobytes(),
            "extra": "",
        }
    keys = [f"class/sub/{number:08d}" for number in range(_MILLION)]
    columns = {
        "key": pa.array(keys, pa.large_string()),
        "path": pa.array([key + ".jpg" for key in keys], pa.large_binary()),
    }
    arrays = [
        columns[column]
        if column in columns
        else pa.repeat(pa.scalar(row.get(column, 0), kind), _MILLION)
        for column, kind in COLUMNS
    ]
    with pa.ipc.new_file(str(path / "index.arrow"), SCHEMA) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
    rows = (path / "index.arrow").read_bytes()
    blocks = (rows[start : start + BLOCK_SIZE] for start in range(0, len(rows), BLOCK_SIZE))
    checksum = file_checksum(map(digest, blocks))
    text = replace(
        manifest,
        samples=_MILLION,
        shards=(Shard(_MILLION, manifest.shards[0].files),),
        index=File("index.arrow", len(rows), checksum),
    ).to_json()
    (path / "manifest.json").write_text(text, encoding="utf-8")
    return path


def test_a_million_rows_open_at_once(million: Path) -> None:
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        with open_dataset(million) as reader:
            assert reader[_MILLION // 2].key == "class/sub/00500000"
            assert reader.labels[-1] == 0
        seconds.append(time.perf_counter() - began)
    assert statistics.median(seconds) < 0.1
    with open_dataset(million) as reader:
        reader[-1]
        assert len(pickle.dumps(reader)) < 10_000


def test_a_million_rows_cost_a_forked_worker_no_memory(million: Path) -> None:
    with open_dataset(million) as reader:
        assert reader[0].key == "class/sub/00000000"

        def stays_small() -> bool:
            before = _private_kilobytes()
            total = 0
            for row in range(0, _MILLION, 50):
                total += len(reader[row].key)
            total += int(reader.labels.sum()) + int(reader.index.lengths.sum())
            return total > 0 and _private_kilobytes() < before + 20_000

        assert _status(_forked(stays_small)) == 0


def _private_kilobytes() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))


def test_opening_reads_no_shard(tmp_path: Path, path: Path, format: Packing) -> None:
    lonely = Path(shutil.copytree(path, tmp_path / "o"))
    for file in lonely.glob("shard-*"):
        file.unlink()
    with open_dataset(lonely) as reader:
        assert len(reader) == _ROWS
        assert reader.labels.tolist() == [row % 5 for row in range(_ROWS)]
        with pytest.raises(PackError, match="shard-000000"):
            reader[0]
    assert len(verify(lonely).faults) >= len(
        json.loads((path / "manifest.json").read_text())["shards"]
    )
    assert format.name == reader.manifest.format


def test_the_limit_of_open_files_is_left_as_it_is(path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open_dataset(path) as reader:
        reader.read_many(range(_ROWS))
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def test_views_can_be_decoded_and_are_unsigned(dataset: Path) -> None:
    with open_dataset(dataset, copy=False) as views, open_dataset(dataset) as copies:
        for view, copied in zip(views, copies, strict=True):
            assert memoryview(view.image).format == "B"  # type: ignore[arg-type]
            assert np.array_equal(decode(view.image), decode(copied.image))
