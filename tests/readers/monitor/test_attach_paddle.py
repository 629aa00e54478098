"""The monitor in an unmodified PaddlePaddle DataLoader."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readers.monitor import LoaderMonitor
from readers.monitor.record import UNKNOWN
from tests.planted import BATCH, BATCHES, SAMPLES, Samples, agree, pause

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    paddle = pytest.importorskip("paddle")
    from paddle.io import DataLoader, Dataset, IterableDataset

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def monitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoaderMonitor]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = LoaderMonitor()
    yield made
    made.close()
    assert list(tmp_path.glob("packer-monitor-*")) == []


class PaddleSamples(Samples, Dataset[Any]):
    """The planted samples as Paddle wants them."""


class Numbers(IterableDataset[Any]):
    """Eight numbers a worker, two whole batches."""

    def __iter__(self) -> Iterator[Any]:
        for number in range(2 * BATCH):
            yield np.array([number])


def collate_planted(samples: list[dict[str, int]]) -> Any:  # noqa: ANN401
    """Takes 6 ms and gives what was planted as an array."""
    took = pause(0.006)
    number = samples[0]["index"] // BATCH
    times = [sum(sample[stage] for sample in samples) for stage in ("dataset", "transform")]
    return [np.array([number, *times, took], np.int64)]


collate: Any = collate_planted


@pytest.mark.parametrize(
    ("workers", "options"),
    [
        (0, {}),
        (2, {}),
        (2, {"use_shared_memory": False}),
        (1, {"persistent_workers": True}),
    ],
    ids=["main", "shared memory", "no shared memory", "persistent"],
)
def test_stages_are_those_planted(
    monitor: LoaderMonitor, workers: int, options: dict[str, Any]
) -> None:
    loader = monitor.attach(
        DataLoader(
            PaddleSamples(), batch_size=BATCH, collate_fn=collate, num_workers=workers, **options
        )
    )
    delivered = [[batch[0].numpy().tolist() for batch in loader] for _ in range(2)]
    recording = monitor.recording()
    assert (monitor.failures, recording.lost) == (0, 0)
    for epoch, batches in enumerate(delivered):
        measured = sorted(
            (record for record in recording.batches if record.epoch == epoch),
            key=lambda record: record.batch,
        )
        assert len(measured) == len(batches) == BATCHES
        numbers, *stages = zip(*batches, strict=True)
        assert tuple(record.batch for record in measured) == numbers
        for stage, planted in zip(("dataset", "transform", "collate"), stages, strict=True):
            assert agree([getattr(record, stage) for record in measured], planted)
        assert {(record.samples, record.nbytes) for record in measured} == {(BATCH, 32)}
    assert {record.worker for record in recording.batches} == (
        set(range(workers)) if workers else {UNKNOWN}
    )
    assert [step.batch for step in recording.steps] == 2 * list(range(BATCHES))
    facts = recording.facts
    assert (facts.framework, facts.workers, facts.length) == ("paddle", workers, BATCHES)


@pytest.mark.parametrize("workers", [0, 2])
def test_streams_with_paddles_own_collate(monitor: LoaderMonitor, workers: int) -> None:
    loader = monitor.attach(DataLoader(Numbers(), batch_size=BATCH, num_workers=workers))
    batches = [batch for _ in range(2) for batch in loader()]
    recording = monitor.recording()
    assert len(batches) == len(recording.batches) == 4 * max(1, workers)
    assert {record.samples for record in recording.batches} == {BATCH}
    assert all(state.stage == "idle" for state in recording.workers)
    assert monitor.failures == 0


def test_samples_without_batches(monitor: LoaderMonitor) -> None:
    unbatched: dict[str, Any] = {"batch_size": None}
    loader = monitor.attach(DataLoader(PaddleSamples(lambda _: np.zeros(3)), **unbatched))
    assert len(list(loader)) == SAMPLES
    assert [record.samples for record in monitor.recording().batches] == [1] * SAMPLES


def test_an_epoch_that_ends_early_and_detaching(monitor: LoaderMonitor) -> None:
    samples = PaddleSamples()
    loader = DataLoader(samples, batch_size=BATCH, collate_fn=collate, num_workers=1)
    before = dict(vars(loader)), dict(vars(samples))
    attached = monitor.attach(loader)
    for _ in attached:
        break
    assert len(list(attached)) == BATCHES
    assert monitor.detach(attached) is loader
    assert (vars(loader), vars(samples)) == before
    assert [step.compute for step in monitor.recording().steps if step.epoch == 0] == [UNKNOWN]
