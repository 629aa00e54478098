"""Reading from storage that answers late: many requests at once, in the right order, and an end."""

from __future__ import annotations

import errno
import gc
import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from packer.convert import convert
from packer.options import ConvertOptions
from readers.access import Access
from readers.block_shuffle import BlockShuffle
from readers.dataset import Dataset
from readers.errors import CorruptDatasetError, StorageError
from readers.loader import MonitoredLoader
from readers.monitor.attach import LoaderMonitor
from readers.opening import open_dataset
from readers.permutation import derive_seed
from readers.requests import Requests
from readers.sample import Image, bytes_of
from tests.far_storage import FarStorage, put_far_away
from tests.trees import MemorySource, Packing, a_sample, image_bytes, jpeg

_ROWS = 40
_DELAY = 0.02
_TIMEOUT = 60

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, format: Packing) -> Path:
    """A dataset of a few shards; not to be changed."""
    samples = [
        a_sample(number, f"k/{number}", jpeg(number))._replace(label=0) for number in range(_ROWS)
    ]
    path = tmp_path_factory.mktemp("far") / str(format)
    options = ConvertOptions(image=format.policy, shard_samples=15)
    convert(MemorySource(samples, ("a",)), path, format=format.name, options=options)
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of one shard of the simplest format; not to be changed."""
    path = tmp_path_factory.mktemp("plain") / "packed"
    samples = [a_sample(n, f"k/{n}", jpeg(n))._replace(label=0) for n in range(_ROWS)]
    convert(MemorySource(samples, ("a",)), path, format="webdataset")
    return path


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> FarStorage:
    """Puts all files far away; nearer again by its delay."""
    storage = FarStorage()
    put_far_away(monkeypatch, storage)
    return storage


@pytest.mark.parametrize("copy", [True, False], ids=["copy", "view"])
@pytest.mark.parametrize("gap", [0, 1 << 20], ids=["apart", "together"])
def test_samples_come_in_the_order_asked(
    path: Path, format: Packing, far: FarStorage, *, copy: bool, gap: int
) -> None:
    rows = np.random.default_rng(7).integers(-_ROWS, _ROWS, 100).tolist()
    far.delay = 0.0002
    with open_dataset(path, copy=copy, access=Access(requests=8, gap=gap)) as dataset:
        samples = dataset.read_many(rows)
        wait = dataset.read_ahead(rows)
        assert wait is not None
        ahead = wait()
        for row, sample, other in zip(rows, samples, ahead, strict=True):
            assert image_bytes(sample) == image_bytes(other) == format.stored(jpeg(row % _ROWS))
            assert sample.key == f"k/{row % _ROWS}"
            assert isinstance(sample.image, bytes) == (copy and not format.pixels)
            assert _is_readonly(sample.image) == (not (copy and format.pixels))


def _is_readonly(image: Image) -> bool:
    return (
        not image.flags.writeable
        if isinstance(image, np.ndarray)
        else memoryview(bytes_of(image)).readonly
    )


def test_as_many_requests_are_under_way_as_were_asked_for(plain: Path, far: FarStorage) -> None:
    far.delay = _DELAY
    with open_dataset(plain, access=Access(requests=8, gap=0)) as dataset:
        dataset.read_many([0, 1])
        far.reads.clear()
        began = time.monotonic()
        dataset.read_many(range(0, _ROWS, 2))
        took = time.monotonic() - began
    assert far.most == 8
    assert len(far.reads) == _ROWS // 2  # one read a sample, nothing else
    assert took < _DELAY * _ROWS / 2 / 2


def test_neighbours_are_read_at_once_up_to_the_gap(plain: Path, far: FarStorage) -> None:
    with open_dataset(plain, access=Access(requests=4, gap=1 << 20)) as dataset:
        dataset.read_many([0, 1])
        far.reads.clear()
        dataset.read_many(list(range(_ROWS))[::-1])
    extents = sorted(far.reads)
    assert len(extents) < _ROWS / 4
    assert all(before[0] + before[1] <= after[0] for before, after in itertools.pairwise(extents))


@pytest.mark.usefixtures("far")
def test_what_is_in_memory_needs_no_thread(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with open_dataset(plain, access=Access(requests=8)) as dataset:
        list(dataset)
        if dataset.read_ahead(range(_ROWS)) is not None:
            pytest.skip("this file system doesn't say what is in memory")
        _wait_for_threads(0)
        dataset.read_many(range(_ROWS))
        assert _threads() == 0


def test_a_refused_read_is_told_with_its_place_and_the_next_one_works(
    plain: Path, far: FarStorage
) -> None:
    with open_dataset(plain, access=Access(requests=4, gap=0)) as dataset:
        dataset.read_many([0, 1])
        far.failure = errno.EIO
        with pytest.raises(StorageError, match=r"shard-000000.*byte \d+") as caught:
            dataset.read_many([3, 5, 7])
        offset = dataset.index.offsets
        assert caught.value.offset in {int(offset[row]) for row in (3, 5, 7)}
        far.failure = 0
        assert [sample.key for sample in dataset.read_many([3, 5])] == ["k/3", "k/5"]


def test_a_storage_that_does_not_answer_ends_in_an_error_by_its_name(
    plain: Path, far: FarStorage
) -> None:
    with open_dataset(plain, access=Access(requests=4, timeout=0.05)) as dataset:
        dataset.read_many([0, 1])
        far.delay = 0.5
        began = time.monotonic()
        with pytest.raises(StorageError, match=r"not answered for 0\.05 s"):
            dataset.read_many([3, 20])
        assert time.monotonic() - began < 0.4


def test_what_nobody_waits_for_is_not_read(plain: Path, far: FarStorage) -> None:
    far.delay = _DELAY
    with open_dataset(plain, access=Access(requests=1 + 1, gap=0)) as dataset:
        dataset.read_many([0, 1])
        far.reads.clear()
        wait = dataset.read_ahead(range(_ROWS))
        assert wait is not None
        del wait
        dataset.read_many([0, 39])
    assert len(far.reads) <= 6


def test_threads_end_with_the_reader(plain: Path, far: FarStorage) -> None:
    far.delay = 0.001
    _wait_for_threads(0)
    with open_dataset(plain, access=Access(requests=8)) as dataset:
        dataset.read_many(range(_ROWS))
        assert _threads() == 8
    del dataset
    _wait_for_threads(0)


def _threads() -> int:
    return sum(thread.name.startswith("reader-") for thread in threading.enumerate())


def _wait_for_threads(number: int) -> None:
    gc.collect()
    end = time.monotonic() + _TIMEOUT
    while _threads() != number:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_fork_reads_on_with_threads_of_its_own(plain: Path, far: FarStorage) -> None:
    far.delay = 0.001
    with open_dataset(plain, access=Access(requests=4)) as dataset:
        wanted = [bytes(sample.image) for sample in dataset.read_many(range(_ROWS))]
        under_way = dataset.read_ahead(range(_ROWS))
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            found = [bytes(sample.image) for sample in dataset.read_many(range(_ROWS))]
            os._exit(found != wanted)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert under_way is not None
        assert [bytes(sample.image) for sample in under_way()] == wanted


_STUCK = """
import os, sys, time
from readers.access import Access
from readers.block_shuffle import BlockShuffle
from readers import open_dataset
dataset = open_dataset(sys.argv[1], access=Access(requests=4, gap=0))
len(dataset.labels)
def stuck(*_):
    time.sleep(100)
os.pread = os.preadv = stuck
os.posix_fadvise(os.open(sys.argv[2], os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
from readers import fetching
fetching._in_memory = lambda *_: None
under_way = dataset.read_ahead(range(40))
time.sleep(0.1)
print("end", flush=True)
"""


def test_reads_that_never_end_hold_up_no_exit(plain: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STUCK, str(plain), str(plain / "shard-000000.tar")],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


_STUCK_LOADER = _STUCK.replace(
    "under_way = dataset.read_ahead(range(40))",
    """from readers import MonitoredLoader
import readers.loading.crew as crew
crew._PATIENCE = 0.5
batches = iter(MonitoredLoader(dataset, 8, transform=lambda s: s.key, collate=list, workers=2))""",
)


def test_a_loader_whose_reads_never_end_holds_up_no_exit(plain: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STUCK_LOADER, str(plain), str(plain / "shard-000000.tar")],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.fixture
def loader(plain: Path) -> Iterator[Callable[[int], tuple[MonitoredLoader, LoaderMonitor]]]:
    opened: list[Dataset] = []

    def make(workers: int) -> tuple[MonitoredLoader, LoaderMonitor]:
        dataset = open_dataset(plain, access=Access(requests=16, gap=0))
        opened.append(dataset)
        monitor = LoaderMonitor()
        made = MonitoredLoader(
            dataset,
            4,
            transform=lambda s: s.key,
            collate=list,
            workers=workers,
            prefetch=3,
            monitor=monitor,
        )
        return made, monitor

    yield make
    for dataset in opened:
        dataset.close()


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_the_next_batches_are_read_meanwhile(
    far: FarStorage,
    loader: Callable[[int], tuple[MonitoredLoader, LoaderMonitor]],
    workers: int,
) -> None:
    far.delay = _DELAY
    made, monitor = loader(workers)
    found = []
    with made:
        for batch in made:
            found += batch
            time.sleep(_DELAY * 1.5)
    assert found == [f"k/{row}" for row in range(_ROWS)]
    assert len(far.reads) == _ROWS  # what was begun was used, and nothing was read twice
    if workers:
        assert far.most > 4  # more than one batch has
    waited = sorted(record.read * 1e-9 for record in monitor.recording().batches)
    assert waited[len(waited) // 2] < _DELAY / 2  # the loop took longer than reading ahead
    assert waited[-1] > 0


def test_waiting_for_a_read_counts_as_reading(
    far: FarStorage, loader: Callable[[int], tuple[MonitoredLoader, LoaderMonitor]]
) -> None:
    far.delay = _DELAY
    made, monitor = loader(1)
    with made:
        for _ in made:
            pass
    records = monitor.recording().batches
    read = sum(record.read * 1e-9 for record in records)
    assert read > _DELAY  # the first batch has nothing to hide behind


def test_blocks_are_read_at_once_however_they_are_shuffled(plain: Path, far: FarStorage) -> None:
    shuffle = BlockShuffle(block=8, buffer=16)
    far.delay = 0.001
    access = Access(requests=2, gap=4096)
    with (
        open_dataset(plain, access=access) as dataset,
        MonitoredLoader(
            dataset, 4, shuffle=shuffle, transform=lambda s: s.key, collate=list, workers=2
        ) as loader,
    ):
        found = list(itertools.chain.from_iterable(loader))
    assert found != sorted(found)
    assert sorted(found) == sorted(f"k/{row}" for row in range(_ROWS))
    assert len(far.reads) <= _ROWS / 4


def test_damage_is_told_of_its_own_batch_where_several_are_read_at_once(
    plain: Path, tmp_path: Path, far: FarStorage
) -> None:
    damaged = Path(shutil.copytree(plain, tmp_path / "damaged"))
    far.delay = 0.001
    with open_dataset(damaged, access=Access(requests=2)) as dataset:
        with (damaged / "shard-000000.tar").open("r+b") as shard:
            shard.seek(int(dataset.index.offsets[5]))
            shard.write(bytes(8))
        loader = MonitoredLoader(
            dataset,
            4,
            shuffle=BlockShuffle(block=20, buffer=40),
            transform=lambda s: s.key,
            collate=list,
            workers=1,
        )
        order = BlockShuffle(block=20, buffer=40).order(_ROWS, derive_seed(0, 0)).tolist()
        with loader:
            batches = iter(loader)
            for _ in range(order.index(5) // 4):
                next(batches)
            with pytest.raises(CorruptDatasetError, match="k/5"):
                next(batches)


def test_jobs_are_begun_in_their_order_and_errors_raised() -> None:
    seen: list[int] = []

    def fail() -> None:
        raise KeyError("x")

    with Requests(1) as requests:
        requests.begin([lambda n=n: seen.append(n) for n in range(100)]).wait(_TIMEOUT)  # type: ignore[misc]
        with pytest.raises(KeyError):
            requests.begin([fail]).wait(_TIMEOUT)
        requests.begin([]).wait(_TIMEOUT)
    assert seen == list(range(100))
