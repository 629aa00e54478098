"""The figures that the rules look at, worked out once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np

from readers.monitor.columns import Floats, counts, mean_of_known, seconds, share
from readers.monitor.finding import Severity
from readers.monitor.record import UNKNOWN, LoaderFacts, StepRecord
from readers.monitor.recording import Recording
from readers.monitor.thresholds import Thresholds
from readers.monitor.workers import busy_shares, span

_PREFETCH = 2
"""What PyTorch and Paddle make ahead unless told otherwise."""


@dataclass(frozen=True)
class Figures:
    """A recording as the rules see it. The first step of each epoch is left out of the waits."""

    recording: Recording
    limits: Thresholds

    @property
    def facts(self) -> LoaderFacts:
        """What is known of the loader."""
        return self.recording.facts

    @property
    def ahead(self) -> int:
        """Batches that all workers together make ahead."""
        prefetch = _PREFETCH if self.facts.prefetch == UNKNOWN else self.facts.prefetch
        return self.facts.workers * prefetch

    @property
    def enough(self) -> bool:
        """Whether there is enough to judge by."""
        patience = max(self.limits.patience, 2 * self.ahead)
        looped = not self.recording.steps or self.wait.size >= patience
        return len(self.recording.batches) >= patience and looped

    @cached_property
    def fetch(self) -> Floats:
        """Seconds a batch."""
        return seconds(self.recording.batches, "fetch")

    @cached_property
    def dataset(self) -> Floats:
        """Seconds a batch."""
        return seconds(self.recording.batches, "dataset")

    @cached_property
    def transform(self) -> Floats:
        """Seconds a batch."""
        return seconds(self.recording.batches, "transform")

    @cached_property
    def collate(self) -> Floats:
        """Seconds a batch."""
        return seconds(self.recording.batches, "collate")

    @cached_property
    def work(self) -> Floats:
        """Seconds a batch in dataset and transform: what `cpu`, `queued` and `blocked` divide."""
        return self.dataset + self.transform

    @cached_property
    def cpu(self) -> Floats:
        """Seconds a batch on the CPU."""
        return seconds(self.recording.batches, "cpu")

    @cached_property
    def queued(self) -> Floats:
        """Seconds a batch waiting for a CPU."""
        return seconds(self.recording.batches, "queued")

    @cached_property
    def cpu_wanted(self) -> Floats:
        """Seconds a batch on a CPU or, where that is known, waiting for one."""
        return self.cpu + np.nan_to_num(self.queued)

    @cached_property
    def blocked(self) -> Floats:
        """Seconds a batch neither on a CPU nor waiting for one."""
        return seconds(self.recording.batches, "blocked")

    @cached_property
    def _steady(self) -> list[StepRecord]:
        return [step for step in self.recording.steps if step.step and step.compute != UNKNOWN]

    @cached_property
    def wait(self) -> Floats:
        """Seconds a step, first steps left out."""
        return seconds(self._steady, "wait")

    @cached_property
    def compute(self) -> Floats:
        """Seconds a step, first steps left out."""
        return seconds(self._steady, "compute")

    @cached_property
    def ready(self) -> Floats:
        """Batches that lay finished at each step, first steps left out."""
        return counts(self._steady, "ready")

    @cached_property
    def wait_share(self) -> float | None:
        """Part of the loop's time that it waited; None where no loop was seen."""
        return share(self.wait, self.wait + self.compute)

    @cached_property
    def busy(self) -> Mapping[str, float]:
        """Share of the time in which each worker made batches."""
        return busy_shares(self.recording.batches)

    @property
    def mean_busy(self) -> float:
        """The mean of it."""
        return fmean(self.busy.values()) if self.busy else 0.0

    @cached_property
    def cpu_share(self) -> float | None:
        """Part of the fetch that a worker is on a CPU; collate counts as such."""
        return share(self.cpu + self.collate, self.fetch)

    @cached_property
    def cpu_demand(self) -> float | None:
        """Part of the fetch that a worker is on a CPU or waits for one; collate counts as such."""
        return share(self.cpu + self.queued + self.collate, self.fetch)

    @cached_property
    def cores_used(self) -> float | None:
        """Part of the cores that the workers use."""
        whole = span(self.recording.batches) * self.facts.cores
        on_cpu = mean_of_known(self.cpu + self.collate)
        return on_cpu * self.fetch.size / whole if on_cpu is not None and whole else None

    @cached_property
    def batch_bytes(self) -> float | None:
        """Bytes of the largest batch."""
        sizes = counts(self.recording.batches, "nbytes")
        known = sizes[~np.isnan(sizes)]
        return float(known.max()) if known.size else None

    @cached_property
    def handed_share(self) -> float | None:
        """Part of the waiting that was for batches finished already; None where it isn't known."""
        ended = {(batch.epoch, batch.batch): batch.ended for batch in self.recording.batches}
        waited = handed = 0
        for step in self.recording.steps:
            made = ended.get((step.epoch, step.batch))
            if step.step and step.batch != UNKNOWN and made is not None:
                waited += step.wait
                handed += min(step.wait, max(0, step.began + step.wait - made))
        return handed / waited if waited else None

    @property
    def step_seconds(self) -> tuple[float, float] | None:
        """Mean wait and mean compute; None where no loop was seen."""
        if not self.wait.size:
            return None
        return float(self.wait.mean()), float(self.compute.mean())

    def factor(self, gone: float) -> float:
        """Tells how many times the throughput rises when a share of the fetch falls away.

        Model: the loop takes the longer of making a batch and computing on it, so from
        T = wait + compute it falls to max(compute, T - gone x T); without workers it falls by the
        share of the wait.
        """
        step = self.step_seconds
        if step is None:
            return 1 / max(1 - gone, 1e-3)
        wait, compute = step
        whole = wait + compute
        saved = gone * (whole if self.facts.workers else wait)
        return whole / max(compute, whole - saved, 1e-3 * whole)

    def broken(self, part: Floats, whole: Floats, limit: float) -> float:
        """Gives the share of the batches whose part is over a limit, of those that are known."""
        known = ~np.isnan(part)
        return float((part > limit * whole)[known].mean()) if known.any() else 0.0

    def severity(self, broken: float = math.inf) -> Severity | None:
        """Weighs the waiting and the share of the batches that break a limit.

        None where one of them is under the limit at which an alarm clears. Where no loop was seen,
        nobody can tell whether the work holds anything up: at most a note.
        """
        limits = self.limits
        if broken < limits.cleared:
            return None
        if self.wait_share is None:
            return "note"
        if self.wait_share < limits.noted:
            return None
        raised = self.wait_share > limits.bound and broken > limits.raised
        return "alarm" if raised else "note"
