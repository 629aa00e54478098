"""Recordings of loaders that never ran: a simulation with planted times gives them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace

from readers.monitor.record import (
    UNKNOWN,
    BatchRecord,
    LoaderFacts,
    StepRecord,
)
from readers.monitor.recording import Recording

MS = 1_000_000
_BYTES = 800_000

FACTS = LoaderFacts(
    framework="torch",
    workers=4,
    threads=False,
    batch_size=8,
    prefetch=2,
    in_order=True,
    persistent=True,
    length=100,
    cores=8,
    storage="ext4",
    format="",
    dataset="",
    pixels=False,
)


@dataclass(frozen=True, kw_only=True)
class Plant:
    """What a batch costs; times in milliseconds, shares of dataset and transform."""

    dataset: float = 8.0
    transform: float = 1.0
    collate: float = 0.5
    decode: float | None = None
    cpu: float | None = 0.98
    queued: float = 0.01
    cold: float = 0.0
    """Share of the bytes read that came from storage."""
    faults: int = 0
    nbytes: int = 1_000_000


@dataclass(frozen=True, kw_only=True)
class _Simulation:
    plant: Callable[[int, int], Plant]
    facts: LoaderFacts
    batches: int
    compute: float
    start: float
    transport: float
    free: int

    def run(self, recording: Recording, epoch: int, now: float) -> float:
        """Plays an epoch and gives the time at its end."""
        facts = self.facts
        ahead = facts.workers * facts.prefetch
        free_at = [now + self.start] * max(1, facts.workers)
        received: list[float] = []
        made: list[BatchRecord] = []
        steps: list[StepRecord] = []
        asked = now
        for number in range(self.batches):
            issued = received[number - ahead] if number >= ahead > 0 else now
            worker = number % facts.workers if facts.workers else 0
            began = max(free_at[worker], issued if facts.workers else asked)
            record = self._batch(epoch, number, worker, began)
            free_at[worker] = record.ended / MS
            made.append(record)
            got = max(asked, record.ended / MS) + (self.transport if facts.workers else 0.0)
            received.append(got)
            steps.append(self._step(epoch, number, asked, got))
            asked = got + self.compute
        ended = sorted(record.ended for record in made)
        recording.batches.extend(sorted(made, key=lambda record: record.ended))
        recording.steps.extend(
            replace(step, ready=max(0, bisect_right(ended, step.began) - step.step))
            for step in steps
        )
        return asked

    def _step(self, epoch: int, number: int, asked: float, got: float) -> StepRecord:
        return StepRecord(
            step=number,
            epoch=epoch,
            batch=number,
            began=round(asked * MS),
            wait=round((got - asked) * MS),
            compute=round(self.compute * MS) if number < self.batches - 1 else UNKNOWN,
            samples=self.facts.batch_size,
            ready=0,
            shared_memory_free=self.free,
        )

    def _batch(self, epoch: int, number: int, worker: int, began: float) -> BatchRecord:
        plant = self.plant(number, worker)
        work = (plant.dataset + plant.transform) * MS
        known = plant.cpu is not None
        return BatchRecord(
            batch=number,
            epoch=epoch,
            worker=worker if self.facts.workers else UNKNOWN,
            pid=1000 + worker,
            thread=1000 + worker,
            sequence=epoch * self.batches + number,
            samples=self.facts.batch_size,
            began=round(began * MS),
            dataset=round(plant.dataset * MS),
            read=UNKNOWN,
            decode=UNKNOWN if plant.decode is None else round(plant.decode * MS),
            transform=round(plant.transform * MS),
            collate=round(plant.collate * MS),
            cpu=UNKNOWN if plant.cpu is None else round(work * plant.cpu),
            queued=round(work * plant.queued) if known else UNKNOWN,
            read_calls_bytes=_BYTES if known else UNKNOWN,
            storage_bytes=round(_BYTES * plant.cold) if known else UNKNOWN,
            major_faults=plant.faults if known else UNKNOWN,
            nbytes=plant.nbytes,
        )


def simulate(
    plant: Callable[[int, int], Plant] = lambda _batch, _worker: Plant(),
    *,
    facts: LoaderFacts = FACTS,
    batches: int = 100,
    epochs: int = 1,
    compute: float = 20.0,
    start: float = 5.0,
    transport: float = 0.1,
    free: int = 8 << 30,
) -> Recording:
    """Plays a loader whose workers take turns, as PyTorch's do; times in milliseconds.

    Args:
        plant: Gives what a batch costs a worker.
        facts: Of the loader.
        batches: An epoch.
        epochs: How many, a second apart.
        compute: The loop's time with each batch.
        start: Time until workers begin, each epoch.
        transport: Time from a worker to the loop.
        free: Bytes of shared memory.
    """
    recording, now = Recording(facts), 0.0
    simulation = _Simulation(
        plant=plant,
        facts=facts,
        batches=batches,
        compute=compute,
        start=start,
        transport=transport,
        free=free,
    )
    for epoch in range(epochs):
        now = simulation.run(recording, epoch, now) + 1000.0
    return recording
