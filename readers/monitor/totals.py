"""Counts that only grow, from recordings that hold just the last records."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from readers.monitor.record import UNKNOWN, BatchRecord, LatencyRecord, Part, StepRecord
from readers.monitor.recording import Recording
from readers.monitor.sample_words import LATENCY_POWERS
from readers.monitor.workers import worker_name

BOUNDS = tuple(1e-4 * 2**power for power in range(18))
"""Upper bounds of the histograms in seconds: 0.1 ms to 13 s, each twice the one before."""

_STAGES = ("dataset", "transform", "collate", "fetch")
_AMOUNTS = {
    "cpu": 1e-9,
    "queued": 1e-9,
    "blocked": 1e-9,
    "read_calls_bytes": 1.0,
    "storage_bytes": 1.0,
    "major_faults": 1.0,
}


class Histogram:
    """How often something took how long."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        """Counts a time."""
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """Upper bounds as text, each with the number of times up to it."""
        names = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
        return list(zip(names, map(float, accumulate(self._counts)), strict=True))


def latency_buckets(latencies: Sequence[LatencyRecord], part: Part) -> list[tuple[str, float]]:
    """Gives upper bounds as text, each with the number of samples up to it, of one part."""
    counts = Counter({found.begin: found.count for found in latencies if found.part == part})
    ends = [1 << power for power in LATENCY_POWERS]
    upto = accumulate(counts[0 if place == 0 else end >> 1] for place, end in enumerate(ends))
    names = [*(f"{end * 1e-9:.9g}" for end in ends), "+Inf"]
    return list(zip(names, [*map(float, upto), float(counts.total())], strict=True))


class Totals:
    """Adds up what is new in each recording of a run.

    Attributes:
        stages: Times by the name of a stage, `wait` and `compute` among them.
        amounts: Seconds on the CPU and so on, bytes, faults; by the name of the record's field.
        samples: That the loop got.
        steps: Batches that the loop got.
        batches: Made, by the name of the worker.
        first_batch: Seconds until the last epoch's first batch; None before there was one.
    """

    def __init__(self) -> None:
        self.stages = {name: Histogram() for name in (*_STAGES, "wait", "compute")}
        self.amounts = dict.fromkeys(_AMOUNTS, 0.0)
        self.samples = 0
        self.steps = 0
        self.batches: Counter[str] = Counter()
        self.first_batch: float | None = None
        self._made: dict[tuple[int, int], int] = {}
        self._step: tuple[int, int] = (UNKNOWN, UNKNOWN)

    def add(self, recording: Recording) -> None:
        """Adds the records that weren't there the last time."""
        for batch in recording.batches:
            maker = (batch.pid, batch.thread)
            if batch.sequence > self._made.get(maker, UNKNOWN):
                self._made[maker] = batch.sequence
                self._add_batch(batch)
        for step in recording.steps:
            if (step.epoch, step.step) > self._step:
                self._step = (step.epoch, step.step)
                self._add_step(step)

    def _add_batch(self, batch: BatchRecord) -> None:
        for name in _STAGES:
            self.stages[name].add(getattr(batch, name) * 1e-9)
        for name, unit in _AMOUNTS.items():
            if (value := getattr(batch, name)) != UNKNOWN:
                self.amounts[name] += value * unit
        self.batches[worker_name(batch)] += 1

    def _add_step(self, step: StepRecord) -> None:
        if step.step == 0:
            self.first_batch = step.wait * 1e-9
        self.stages["wait"].add(step.wait * 1e-9)
        if step.compute != UNKNOWN:
            self.stages["compute"].add(step.compute * 1e-9)
        self.steps += 1
        self.samples += step.samples
