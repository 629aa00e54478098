"""How many workers a loader needs, and what stands in the way of having them.

The formula, tried against planted times (40 ms to prepare and 10 ms to compute: 4 workers; 40 and
20: 2; 20 and 40: 1)::

    need       = ceil(preparation time of a batch / compute time of a batch x headroom)
    CPU        = usable cores / share of its time that a worker is on a CPU or waits for one
    storage    = IOPS / (reads per sample x samples of a batch / preparation time of a batch)
    shared memory = capacity / (batches ahead per worker x bytes of a batch)
    memory     = workers now + free memory / unique memory of a worker
    advice     = the least of them, at least 1

Waiting for a CPU counts as wanting it: else rivals, who make workers' time on it smaller, would
speak for more workers. A share that isn't known counts as 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from readers.monitor.amounts import duration
from readers.monitor.figures import Figures
from readers.monitor.record import UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a recording doesn't tell of the machine; None where it isn't known."""

    iops: float | None = None
    """Reads a second that the storage gives."""
    reads_per_sample: float = 1.0
    free_memory: int | None = None
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCount:
    """Advice on the number of workers."""

    workers: int
    need: float
    """Workers that would hide the loading; infinite where the loop computes nothing."""
    caps: Mapping[str, float]
    """What binds, and the number of workers at which it does."""
    binding: str
    """The cap that binds, or `need`."""
    why: str
    """The numbers, in words."""

    @property
    def suffices(self) -> bool:
        """Whether this number of workers hides the loading."""
        return self.workers >= self.need


def worker_count(figures: Figures, machine: Machine) -> WorkerCount | None:
    """Works out the number of workers; None where the loop's compute time isn't known."""
    step = figures.step_seconds
    if step is None or not figures.fetch.size:
        return None
    prepare, (_, compute) = float(figures.fetch.mean()), step
    ideal = prepare / compute * figures.limits.headroom if compute > 0 else math.inf
    need = math.ceil(ideal) if math.isfinite(ideal) else math.inf
    caps = _caps(figures, machine, prepare)
    binding = min(caps, key=lambda name: caps[name], default="need")
    if not caps or need <= caps[binding]:
        binding = "need"
    least = need if binding == "need" else caps[binding]
    workers = max(1, int(least)) if math.isfinite(least) else max(1, figures.facts.cores)
    times = f"{duration(prepare)} to prepare a batch, {duration(compute)} to compute on it"
    wanted = f"{need:,.0f}" if math.isfinite(need) else "any number"
    why = (
        f"the need: {times}" if binding == "need" else f"{binding} binds, {wanted} needed: {times}"
    )
    return WorkerCount(workers=workers, need=need, caps=caps, binding=binding, why=why)


def shared_capacity(figures: Figures) -> float | None:
    """Gives the bytes of shared memory that batches can have: free ones and those of ready batches.

    The most that was seen, because what is in flight isn't free. None where it isn't known.
    """
    held = figures.batch_bytes or 0.0
    seen = [
        step.shared_memory_free + max(0, step.ready) * held
        for step in figures.recording.steps
        if step.shared_memory_free != UNKNOWN
    ]
    return max(seen) if seen else None


def _caps(figures: Figures, machine: Machine, prepare: float) -> dict[str, float]:
    facts = figures.facts
    caps: dict[str, float] = {}
    demand = 1.0 if figures.cpu_demand is None else min(1.0, figures.cpu_demand)
    if demand:
        caps["CPU"] = _whole(facts.cores / demand)
    if machine.iops is not None:
        samples = sum(batch.samples for batch in figures.recording.batches) / figures.fetch.size
        reads = machine.reads_per_sample * samples / prepare
        caps["storage"] = _whole(machine.iops / reads)
    capacity = shared_capacity(figures)
    if capacity is not None and figures.batch_bytes and facts.workers and not facts.threads:
        ahead = figures.ahead / facts.workers * figures.batch_bytes
        caps["shared memory"] = _whole(figures.limits.shared_memory * capacity / ahead)
    unique = [record.unique for record in figures.recording.memory if record.worker != UNKNOWN]
    if machine.free_memory is not None and unique:
        caps["memory"] = facts.workers + math.floor(machine.free_memory / median(unique))
    return caps


def _whole(workers: float) -> int:
    return max(1, math.floor(round(workers, 6)))
