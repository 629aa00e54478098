from __future__ import annotations

from dataclasses import replace

import pytest

from readers.monitor.figures import Figures
from readers.monitor.record import MemoryRecord
from readers.monitor.thresholds import Thresholds
from readers.monitor.worker_count import Machine, worker_count
from tests.recordings import Plant, simulate


@pytest.mark.parametrize(
    ("prepare", "compute", "workers"), [(40.0, 10.0, 5), (40.0, 20.0, 3), (20.0, 40.0, 1)]
)
def test_the_number_of_workers(prepare: float, compute: float, workers: int) -> None:
    recording = simulate(
        lambda _batch, _worker: Plant(dataset=prepare, transform=0, collate=0, cpu=0.02),
        compute=compute,
    )
    count = worker_count(Figures(recording, Thresholds()), Machine())
    assert count is not None
    assert (count.workers, count.binding, count.suffices) == (workers, "need", True)


@pytest.mark.parametrize(
    ("machine", "free", "cpu", "binding", "workers"),
    [
        (Machine(), 8 << 30, 1.0, "CPU", 8),
        (Machine(iops=800), 8 << 30, 0.1, "storage", 4),
        (Machine(), 5_000_000, 0.1, "shared memory", 2),
        (Machine(free_memory=100 << 20), 8 << 30, 0.1, "memory", 6),
    ],
    ids=["CPU", "storage", "shared memory", "memory"],
)
def test_the_cap_that_binds_is_named(
    machine: Machine, free: int, cpu: float, binding: str, workers: int
) -> None:
    recording = simulate(
        lambda _batch, _worker: Plant(dataset=40, transform=0, collate=0, cpu=cpu, queued=0),
        compute=1,
        free=free,
    )
    recording.steps[:] = [replace(step, ready=0) for step in recording.steps]
    recording.memory.append(
        MemoryRecord(stamp=0, worker=0, pid=1000, unique=50 << 20, proportional=50 << 20)
    )
    count = worker_count(Figures(recording, Thresholds()), machine)
    assert count is not None
    assert (count.binding, count.workers, count.suffices) == (binding, workers, False)
    assert f"{binding} binds, 46 needed" in count.why
