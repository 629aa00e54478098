from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from readers.monitor.record import UNKNOWN
from readers.monitor.recording import Recording
from readers.monitor.report import report_text
from readers.monitor.summary import summarize, summary_text
from readers.monitor.window import epochs_of, last, of_epoch
from tests.recordings import FACTS, Plant, simulate


def test_every_figure_is_what_was_planted() -> None:
    facts = replace(FACTS, workers=2)
    recording = simulate(
        lambda batch, _: Plant(dataset=30 if batch % 2 else 10, transform=4, collate=1, decode=8),
        facts=facts,
        batches=200,
        epochs=2,
        compute=5.0,
        start=50.0,
    )
    summary = summarize(recording)
    assert (summary.batches, summary.steps, summary.samples, summary.epochs) == (400, 400, 3200, 2)
    dataset = summary.stages["dataset"]
    assert dataset.mean == pytest.approx(0.020)
    assert dataset.p50 == pytest.approx(0.020)
    assert [dataset.p90, dataset.p99] == pytest.approx([0.030, 0.030])
    assert summary.stages["decode"].p50 == pytest.approx(0.008)
    assert "read" not in summary.stages
    assert summary.stages["fetch"].mean == pytest.approx(0.025)
    assert summary.cpu_per_sample == pytest.approx(0.98 * 0.024 / 8)
    whole = [step for step in recording.steps if step.compute != UNKNOWN]
    waits = sum(step.wait for step in whole)
    assert summary.wait_share == pytest.approx(waits / (waits + len(whole) * 5_000_000))
    assert summary.first_batch == pytest.approx(0.0651)
    # Worker 1 has the slow batches: both are bound to its 35 ms a pair of batches.
    assert summary.batches_per_second == pytest.approx(2 / 0.035, rel=0.03)
    assert summary.samples_per_second == pytest.approx(16 / 0.035, rel=0.03)
    assert summary.busy == {
        "worker 0": pytest.approx(15 / 35, rel=0.05),
        "worker 1": pytest.approx(1.0, rel=0.05),
    }
    text = summary_text(summary)
    assert "3,200 samples in 400 batches" in text
    assert "  decode" in text


def test_windows_and_epochs() -> None:
    recording = simulate(batches=50, epochs=3)
    assert epochs_of(recording) == [0, 1, 2]
    second = of_epoch(recording, 1)
    assert {step.epoch for step in second.steps} == {1}
    assert summarize(second).steps == 50
    window = last(recording, 20)
    assert [step.step for step in window.steps] == list(range(30, 50))
    assert len(window.batches) == 20


def test_what_is_unknown_is_left_out() -> None:
    alone = replace(simulate(lambda _batch, _worker: Plant(cpu=None), batches=10), steps=[])
    summary = summarize(alone)
    assert summary.cpu_per_sample is None
    assert summary.wait_share is None
    assert summary.samples == 80
    assert summary.samples_per_second is not None
    assert "wait" not in summary.stages


@pytest.mark.parametrize("batches", [0, 1])
def test_little_or_nothing(batches: int) -> None:
    recording = simulate(batches=batches) if batches else Recording(FACTS)
    assert summarize(recording).steps == batches
    assert report_text(recording)


def test_many_workers_are_summed_up_in_a_line() -> None:
    recording = simulate(facts=replace(FACTS, workers=32), batches=200)
    assert "32 workers, the least" in summary_text(summarize(recording))


def test_percentiles_are_numpys() -> None:
    times = np.random.default_rng(0).gamma(2, 5, 300)
    recording = simulate(lambda batch, _: Plant(dataset=float(times[batch])), batches=300)
    spread = summarize(recording).stages["dataset"]
    assert spread.p99 == pytest.approx(float(np.percentile(times, 99)) / 1000, rel=1e-5)
