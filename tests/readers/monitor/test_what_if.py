from __future__ import annotations

from dataclasses import replace

import pytest

from readers.errors import OptionError
from readers.monitor.recording import Recording
from readers.monitor.repeated import RepeatedBatches
from readers.monitor.summary import summarize
from readers.monitor.what_if import Change, predict
from tests.recordings import FACTS, Plant, simulate

SLEEPY = Plant(dataset=38, transform=1, collate=1, cpu=0.1, queued=0)


def run(workers: int, plant: Plant = SLEEPY, cores: int = 8) -> Recording:
    facts = replace(FACTS, workers=workers, cores=cores)
    return simulate(lambda _batch, _worker: plant, facts=facts, batches=300, compute=10.0)


def rate(recording: Recording) -> float:
    speed = summarize(recording).samples_per_second
    assert speed is not None
    return speed


@pytest.mark.parametrize("now", [0, 1, 2, 4])
@pytest.mark.parametrize("then", [0, 1, 2, 3, 6])
def test_another_number_of_workers_gives_what_was_predicted(now: int, then: int) -> None:
    prediction = predict(run(now), [Change(workers=then)])[0]
    assert prediction.samples_per_second == pytest.approx(rate(run(then)), rel=0.05)


def test_cores_bound_workers_that_compute() -> None:
    busy = Plant(dataset=38, transform=1, collate=1, cpu=1.0, queued=0)
    prediction = predict(run(1, busy, cores=2), [Change(workers=8)])[0]
    assert prediction.bound_by == "cores"
    assert prediction.factor == pytest.approx(2, rel=0.02)


def test_storage_pixels_and_caches() -> None:
    cold = Plant(dataset=80, transform=10, collate=2, cpu=0.4, queued=0, decode=20)
    faster, smaller, decoded, bound = predict(
        run(2, cold), [Change(storage=4), Change(pixels=0.25), Change(decoded=True)]
    )
    # 92 ms: 54 blocked, 20 decoding, 10 transform, 8 other; 2 workers.
    assert faster.factor == pytest.approx(92 / (92 - 54 * 0.75), rel=0.02)
    assert smaller.factor == pytest.approx(92 / (92 - 84 * 0.75), rel=0.02)
    assert decoded.factor == pytest.approx(92 / 72, rel=0.02)
    assert bound.factor == pytest.approx(46 / 10, rel=0.02)
    assert bound.bound_by == "compute"


def test_a_prediction_is_never_over_the_upper_bound() -> None:
    predictions = predict(run(4), [Change(workers=64, storage=100, decoded=True)])
    assert predictions[0].factor <= predictions[-1].factor


def test_a_recording_without_a_loop_predicts_nothing() -> None:
    with pytest.raises(OptionError, match="no training loop"):
        predict(Recording(FACTS), [])


def test_repeated_batches() -> None:
    repeated = RepeatedBatches(iter("abcdef"), length=7, batches=3)
    assert len(repeated) == 7
    assert list(repeated) == list("abcabca")
    assert list(repeated) == list("abcabca")
    assert list(RepeatedBatches([], length=7)) == []
