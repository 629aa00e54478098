"""Single samples on demand: the slowest, and how often one takes how long."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from packer.commands.monitor import monitor as monitor_command
from packer.convert import convert
from readers.dataset import Dataset
from readers.loader import MonitoredLoader, WorkerKind
from readers.monitor import LoaderMonitor
from readers.monitor.html_report import html_report
from readers.monitor.keys import key_of
from readers.monitor.record import UNKNOWN
from readers.monitor.recording import Recording
from readers.monitor.report import report_text
from readers.monitor.run import read_run
from readers.monitor.sample_words import LATENCY_WIDTH, bucket, sample_record, sample_words
from readers.monitor.slowest import Slowest
from readers.opening import open_dataset
from readers.sample import Sample
from tests.trees import MemorySource, a_sample, jpeg

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

_ROWS = 40
_SLOW = {7: 0.06, 21: 0.09, 33: 0.12}
"""Seconds that these samples take."""


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    samples = [a_sample(number, f"k/{number}", jpeg(number)) for number in range(_ROWS)]
    path = tmp_path_factory.mktemp("photos") / "packed"
    convert(MemorySource(samples, ("a",)), path, format="webdataset")
    with open_dataset(path) as opened:
        yield opened


class Numbers:
    """Some take longer."""

    def __len__(self) -> int:
        return _ROWS

    def __getitem__(self, index: int) -> int:
        time.sleep(_SLOW.get(index, 0.0))
        return index


class Together(Numbers):
    """Could be read many at once."""

    def __getitems__(self, indices: list[int]) -> list[int]:
        return [self[index] for index in indices]


def slow_keys(sample: Sample) -> int:
    """Takes long with some samples."""
    number = int(sample.key.removeprefix("k/"))
    time.sleep(_SLOW.get(number, 0.0))
    return number


def check(recording: Recording, epochs: int = 2) -> None:
    """Holds what was recorded against what was planted."""
    slowest = {sample.index: sample.took * 1e-9 for sample in recording.samples[:3]}
    assert set(slowest) == set(_SLOW)
    assert all(_SLOW[index] <= took < _SLOW[index] + 0.05 for index, took in slowest.items())
    took = [sample.took for sample in recording.samples]
    assert took == sorted(took, reverse=True)
    counted = Counter[str]()
    for latency in recording.latencies:
        counted[latency.part] += latency.count
    assert counted["sample"] == epochs * _ROWS
    late = [latency.count for latency in recording.latencies if latency.begin >= 1 << 25]
    assert sum(late) >= epochs * len(_SLOW)


@pytest.mark.parametrize("dataset", [Numbers(), Together()], ids=["one by one", "together"])
@pytest.mark.parametrize("workers", [0, 2])
def test_in_pytorch(dataset: Any, workers: int) -> None:  # noqa: ANN401 - a torch dataset, typed
    data = pytest.importorskip("torch.utils.data")
    monitor = LoaderMonitor(samples=5)
    loader = monitor.attach(data.DataLoader(dataset, batch_size=4, num_workers=workers))
    for _ in range(2):
        assert [int(value) for batch in loader for value in batch] == list(range(_ROWS))
    check(monitor.recording())
    assert monitor.failures == 0
    monitor.close()


@pytest.mark.parametrize("kind", ["thread", "fork"])
@pytest.mark.parametrize("workers", [0, 2])
def test_in_our_loader_with_keys(photos: Dataset, kind: WorkerKind, workers: int) -> None:
    monitor = LoaderMonitor(samples=5)
    with MonitoredLoader(
        photos, 4, transform=slow_keys, workers=workers, worker_kind=kind, monitor=monitor
    ) as loader:
        for _ in range(2):
            assert [int(value) for batch in loader for value in batch] == list(range(_ROWS))
    recording = monitor.recording()
    check(recording)
    assert all(sample.key == f"k/{sample.index}" for sample in recording.samples)
    assert all(0 < sample.read < sample.took for sample in recording.samples)
    assert sum(found.count for found in recording.latencies if found.part == "read") == 2 * _ROWS
    assert monitor.failures == 0
    monitor.close()


def test_streams_count_their_own_samples() -> None:
    data = pytest.importorskip("torch.utils.data")

    class Stream(data.IterableDataset[int]):  # type: ignore[misc,name-defined]
        def __iter__(self) -> Iterator[int]:
            return (Numbers()[index] for index in range(_ROWS))

    monitor = LoaderMonitor(samples=3)
    assert len(list(monitor.attach(data.DataLoader(Stream(), batch_size=4)))) == 10
    check(monitor.recording(), epochs=1)
    monitor.close()


def test_keys_are_found_behind_subsets_and_adapters(photos: Dataset) -> None:
    data = pytest.importorskip("torch.utils.data")
    adapter = pytest.importorskip("readers.torch")
    part = data.Subset(data.Subset(adapter.MapDataset(photos), [5, 9, 13]), [2, 0])
    assert [key_of(part, 0), key_of(part, 1), key_of(photos, -1)] == ["k/13", "k/5", "k/39"]
    assert key_of(Numbers(), 3) == ""


def test_the_figures_are_shown_everywhere(photos: Dataset, tmp_path: Path) -> None:
    monitor = LoaderMonitor(samples=5, run=tmp_path / "run")
    list(MonitoredLoader(photos, 4, transform=slow_keys, workers=1, monitor=monitor))
    live = read_run(tmp_path / "run")
    assert {sample.key for sample in live.samples[:3]} == {"k/7", "k/21", "k/33"}
    monitor.close()
    recording = read_run(tmp_path / "run")
    assert recording.samples == live.samples[:5]
    assert recording.latencies == live.latencies
    text = report_text(recording)
    assert "the slowest samples" in text
    assert "sample 33 k/33" in text
    assert "how often a read took how long" in text
    page = html_report(recording)
    assert "sample 33 k/33" in page
    assert "How long a sample takes" in page
    run = str(tmp_path / "run")
    answer = json.loads(CliRunner().invoke(monitor_command, ["summarize", run, "--json"]).stdout)
    assert answer["slowest"][0]["key"] == "k/33"
    assert sum(row["count"] for row in answer["latencies"] if row["part"] == "sample") == _ROWS


def test_unless_asked_for_no_sample_is_timed(photos: Dataset, tmp_path: Path) -> None:
    monitor = LoaderMonitor(run=tmp_path)
    list(MonitoredLoader(photos, 4, workers=1, monitor=monitor))
    assert len(list((tmp_path / "rings").glob("*.ring"))) == 2, "the thread's batches and our steps"
    recording = monitor.recording()
    monitor.close()
    assert not recording.samples
    assert not recording.latencies


def test_words_come_back() -> None:
    for key in ("", "k/7", "é" * 100):
        record = sample_record(sample_words(3, 5, UNKNOWN, key), 1)
        assert key.startswith(record.key)
        assert len(record.key.encode()) >= min(127, len(key.encode()))
        assert (record.index, record.took, record.read, record.worker) == (3, 5, UNKNOWN, 1)
    assert [bucket(took, 0) for took in (0, 2047, 2048, 4095, 1 << 60)] == [0, 0, 1, 1, 25]
    assert bucket(1 << 60, 1) == LATENCY_WIDTH - 1


def test_the_slowest_are_kept_once_each() -> None:
    slowest: Slowest[int] = Slowest(3)
    for took in [5, 1, 9, 9, 3, 7, 2]:
        slowest.add(took % 5, took, took)
    assert slowest.things() == [9, 7, 5]
    assert slowest.least == 5
