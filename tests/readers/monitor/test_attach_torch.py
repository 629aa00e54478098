"""The monitor in an unmodified PyTorch DataLoader."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from readers.errors import OptionError
from readers.monitor import LoaderMonitor
from readers.monitor.failure import failures
from readers.monitor.log_parser import parse_log
from readers.monitor.record import UNKNOWN
from readers.monitor.recording import Recording
from readers.monitor.run import read_run
from tests.planted import BATCH, BATCHES, Planted, Samples, agree, collate

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, IterableDataset, Subset

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def monitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoaderMonitor]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = LoaderMonitor()
    yield made
    made.close()
    assert list(tmp_path.glob("packer-monitor-*")) == []


class Numbers(IterableDataset[int]):
    """Ten numbers a worker, which isn't whole batches."""

    def __iter__(self) -> Iterator[int]:
        yield from range(10)


def planted_loader(workers: int = 0, **options: Any) -> DataLoader[Any]:  # noqa: ANN401
    samples: Any = Samples()
    return DataLoader(samples, batch_size=BATCH, collate_fn=collate, num_workers=workers, **options)


def check_times(recording: Recording, epoch: int, delivered: list[Planted]) -> None:
    """Holds what was measured of an epoch against what the batches say of themselves."""
    batches = {record.batch: record for record in recording.batches if record.epoch == epoch}
    assert len(batches) == len(delivered)
    records = [batches[planted.number] for planted in delivered]
    for stage in ("dataset", "transform", "collate"):
        planted = [getattr(batch, stage) for batch in delivered]
        assert agree([getattr(record, stage) for record in records], planted)
    whole = [batch.ended - batch.began for batch in delivered]
    assert agree([record.fetch for record in records], whole)
    for record in records:
        assert record.samples == BATCH
        assert record.cpu < record.fetch / 2
        assert record.storage_bytes == 0
        assert record.read_calls_bytes < 4096, "a worker reads its tasks"


@pytest.mark.parametrize(
    ("workers", "options"),
    [
        (0, {}),
        (2, {}),
        (1, {"multiprocessing_context": "spawn"}),
        (1, {"multiprocessing_context": "forkserver"}),
        (2, {"persistent_workers": True}),
        (2, {"in_order": False}),
    ],
    ids=["main", "fork", "spawn", "forkserver", "persistent", "any order"],
)
def test_stages_are_those_planted(
    monitor: LoaderMonitor, workers: int, options: dict[str, Any]
) -> None:
    loader = monitor.attach(planted_loader(workers, **options))
    epochs = 1 if "multiprocessing_context" in options else 2
    delivered = [list(loader) for _ in range(epochs)]
    recording = monitor.recording()
    assert (monitor.failures, recording.lost) == (0, 0)
    for epoch, batches in enumerate(delivered):
        check_times(recording, epoch, batches)
    assert len(recording.steps) == epochs * BATCHES
    numbers = [step.batch for step in recording.steps[:BATCHES]]
    assert numbers == [UNKNOWN] * BATCHES if "in_order" in options else list(range(BATCHES))
    workers_seen = {record.worker for record in recording.batches}
    assert workers_seen == (set(range(workers)) if workers else {UNKNOWN})
    facts = recording.facts
    assert (facts.framework, facts.workers, facts.length) == ("torch", workers, BATCHES)


def test_steps_add_up_to_the_wall(monitor: LoaderMonitor) -> None:
    loader = monitor.attach(planted_loader(2))
    began = time.perf_counter_ns()
    iterator = iter(loader)
    started = time.perf_counter_ns() - began
    for _ in iterator:
        time.sleep(0.03)
        wall = time.perf_counter_ns() - began
    steps = monitor.recording().steps
    assert agree([wall], [started + sum(step.wait + step.compute for step in steps)])
    assert all(step.compute >= 30_000_000 for step in steps)
    assert all(step.samples == UNKNOWN for step in steps), "this collate function gives no array"
    assert max(step.ready for step in steps) > 0
    assert min(step.wait for step in steps) < 10_000_000


@pytest.mark.parametrize("workers", [0, 2])
def test_streams(monitor: LoaderMonitor, workers: int) -> None:
    loader = monitor.attach(DataLoader(Numbers(), batch_size=BATCH, num_workers=workers))
    sizes = sorted(len(batch) for _ in range(2) for batch in loader)
    recording = monitor.recording()
    assert sorted(record.samples for record in recording.batches) == sizes
    assert sum(sizes) == 2 * 10 * max(1, workers)
    assert [step.samples for step in recording.steps] == [
        len(batch) for _ in range(2) for batch in DataLoader(Numbers(), BATCH, num_workers=workers)
    ]
    assert all(state.stage == "idle" for state in recording.workers)
    assert monitor.failures == 0


def test_items_that_are_batches_already(monitor: LoaderMonitor) -> None:
    data = torch.arange(12.0)
    loader = monitor.attach(DataLoader(data, batch_size=None, sampler=[[0, 1, 2], [3, 4, 5]]))
    assert [batch.tolist() for batch in loader] == [[0, 1, 2], [3, 4, 5]]
    assert [record.samples for record in monitor.recording().batches] == [3, 3]
    assert [record.nbytes for record in monitor.recording().batches] == [12, 12]


def test_several_loaders_at_once() -> None:
    first, second = LoaderMonitor(), LoaderMonitor()
    a, b = first.attach(planted_loader(0)), second.attach(planted_loader(1))
    pairs = list(zip(a, b, strict=True))
    check_times(first.recording(), 0, [one for one, _ in pairs])
    check_times(second.recording(), 0, [other for _, other in pairs])
    first.close()
    second.close()


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}], ids=["new", "persistent"])
def test_an_epoch_that_ends_early(monitor: LoaderMonitor, options: dict[str, Any]) -> None:
    loader = monitor.attach(planted_loader(2, **options))
    for _ in loader:
        break
    whole = list(loader)
    recording = monitor.recording()
    check_times(recording, 1, whole)
    first = [step for step in recording.steps if step.epoch == 0]
    assert [step.compute for step in first] == [UNKNOWN]
    assert len(recording.steps) == 1 + BATCHES


def test_no_line_of_the_log_is_lost(tmp_path: Path) -> None:
    lines: list[str] = []
    monitor = LoaderMonitor(log=lines.append, run=tmp_path / "run")
    numbers: Any = range(2000)
    loader = monitor.attach(DataLoader(numbers, num_workers=2))
    for number, _ in enumerate(loader):
        if number == 1500:
            break
    monitor.close()
    logged = {record.batch for record in parse_log(lines).batches}
    assert logged >= set(range(1501))
    assert len(lines) == len(logged)


def test_a_worker_is_killed(monitor: LoaderMonitor) -> None:
    loader = monitor.attach(planted_loader(2))
    iterator = iter(loader)
    next(iterator)
    os.kill(monitor.snapshot().workers[0].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"killed|exited"):
        list(iterator)
    states = monitor.recording().workers
    assert [state.alive for state in states if state.worker == 0] == [False]
    assert len(list(loader)) == BATCHES


def test_a_stuck_worker_is_seen_from_outside(tmp_path: Path) -> None:
    monitor = LoaderMonitor(run=tmp_path / "run")
    loader = monitor.attach(planted_loader(1))
    iterator = iter(loader)
    next(iterator)
    states = read_run(tmp_path / "run").workers
    assert [state.worker for state in states] == [0]
    assert states[0].alive
    assert states[0].stage in {"idle", "dataset", "transform", "collate"}
    assert 0 <= states[0].seen - states[0].since < 60_000_000_000
    del iterator
    monitor.close()


class Broken(Samples):
    """Fails at one sample."""

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401
        if index == BATCH + 1:
            raise KeyError("planted")
        return super().__getitem__(index)


@pytest.mark.parametrize("workers", [0, 1])
def test_the_users_errors_pass_through(monitor: LoaderMonitor, workers: int) -> None:
    broken: Any = Broken()
    loader = monitor.attach(
        DataLoader(broken, batch_size=BATCH, collate_fn=collate, num_workers=workers)
    )
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(KeyError, match="planted"):
        next(iterator)
    if workers:
        assert [batch.number for batch in iterator] == list(range(2, BATCHES))
    batches = [record.batch for record in monitor.recording().batches]
    assert batches == ([0, *range(2, BATCHES)] if workers else [0])
    assert monitor.failures == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_a_monitor_that_fails_never_stops_training(
    monitor: LoaderMonitor,
    workers: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(failures, "first", None)
    loader = monitor.attach(planted_loader(workers))
    shutil.rmtree(monitor.directory / "rings")
    assert [batch.number for batch in loader] == list(range(BATCHES))
    assert [batch.number for batch in loader] == list(range(BATCHES))
    if not workers:
        assert monitor.failures == 1
        assert "the loader monitor failed" in caplog.text


def test_a_collector_that_fails_never_stops_training(
    monitor: LoaderMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    loader = monitor.attach(planted_loader(0))
    monkeypatch.setattr("readers.monitor.collector.Collector.drain", fail)
    monkeypatch.setattr("readers.monitor.collector.Collector.collect", fail)
    before = monitor.failures
    assert len(list(loader)) == BATCHES
    assert monitor.failures > before
    monkeypatch.undo()


def test_the_attached_loader_is_the_loader(monitor: LoaderMonitor) -> None:
    loader = planted_loader(2)
    attached: Any = monitor.attach(loader)
    assert isinstance(attached, DataLoader)
    assert isinstance(loader.dataset, Samples)
    assert len(attached) == BATCHES
    assert attached.batch_size == BATCH
    assert type(attached).__name__ == "AttachedLoader"
    assert vars(attached)["monitor"] is monitor
    other = LoaderMonitor()
    with pytest.raises(OptionError, match="a LoaderMonitor for each"):
        monitor.attach(loader)
    with pytest.raises(OptionError, match="can't be iterated"):
        other.attach(3)
    other.close()


def test_detach_restores(monitor: LoaderMonitor) -> None:
    samples: Any = Samples()
    loader = DataLoader(
        Subset(samples, range(8)), batch_size=BATCH, collate_fn=collate, num_workers=0
    )
    before = dict(vars(loader)), dict(vars(samples))
    attached = monitor.attach(loader)
    assert type(samples.transform) is not before[1]["transform"]
    assert monitor.detach(attached) is loader
    assert (vars(loader), vars(samples)) == before
    assert [id(value) for value in vars(loader).values()] == [id(v) for v in before[0].values()]
    assert len(list(loader)) == 2
    assert monitor.recording().batches == []


def test_proxies_pickle_to_a_place_and_the_users_object(monitor: LoaderMonitor) -> None:
    samples: Any = Samples()
    loader = DataLoader(samples, batch_size=BATCH, collate_fn=collate)
    monitor.attach(loader)
    for thing in (loader.dataset, loader.collate_fn, vars(samples)["transform"]):
        again = pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own
        assert type(again) is type(thing)
        assert len(pickle.dumps(thing)) < 1000
