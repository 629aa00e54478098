"""Rules on what ends a run rather than slows it: memory, shared memory, stuck workers."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from readers.monitor.amounts import byte_size, duration, percent
from readers.monitor.figures import Figures
from readers.monitor.finding import Finding
from readers.monitor.record import UNKNOWN, MemoryRecord
from readers.monitor.worker_count import shared_capacity

_LOOKS = 6
"""Looks at a process's memory, at least, of which the first third is warming up."""
_CONSUMED = 1
"""Batches that the loop itself holds."""


def stuck(figures: Figures) -> Finding | None:
    """Rule 14: a worker has been in one stage for much too long, or died in it."""
    fetch = figures.fetch
    usual = float(np.percentile(fetch, 99)) if fetch.size else 0.0
    limit = max(figures.limits.stuck, figures.limits.stuck_ratio * usual)
    for state in figures.recording.workers:
        took = (state.seen - state.since) * 1e-9
        if not state.died and (not state.alive or state.stage == "idle" or took <= limit):
            continue
        name = "the main process" if state.worker == UNKNOWN else f"worker {state.worker}"
        evidence: dict[str, float | int | str] = {
            "pid": str(state.pid),
            "stage": state.stage,
            "since_seconds": took,
            "usual_p99_seconds": usual,
        }
        if not state.died:
            return _danger(
                "stuck",
                f"{name} (pid {state.pid}) has been in {state.stage} for {duration(took)}",
                evidence,
                f"see where it stands: `packer monitor stacks {state.pid}`; a time-out on what it"
                " waits for (network mount, lock)",
            )
        return _danger(
            "died",
            f"{name} (pid {state.pid}) died in {state.stage}",
            evidence,
            "see why the kernel ended it: `dmesg | tail` (out of memory?), the memory limit of the"
            " container, free space of /dev/shm",
        )
    return None


def shared_memory(figures: Figures) -> Finding | None:
    """Rule 13: the batches that are made ahead don't fit into /dev/shm."""
    facts, size = figures.facts, figures.batch_bytes
    capacity = shared_capacity(figures)
    if not facts.workers or facts.threads or not size or capacity is None:
        return None
    need = (figures.ahead + _CONSUMED) * size
    if need <= figures.limits.shared_memory * capacity:
        return None
    fitting = int(figures.limits.shared_memory * capacity / size) - _CONSUMED
    return _danger(
        "shared-memory",
        f"the batches made ahead need {byte_size(need)} of the {byte_size(capacity)} of /dev/shm",
        {
            "need_bytes": need,
            "capacity_bytes": capacity,
            "batch_bytes": size,
            "batches_ahead": figures.ahead,
        },
        f"make at most {max(1, fitting)} batches ahead in all (now {figures.ahead}: workers x"
        " prefetch); smaller batches or uint8; more shared memory (`docker run --shm-size=8g`);"
        " threads (`MonitoredLoader`) need none",
    )


def memory_growth(figures: Figures) -> Finding | None:
    """Rule 12: a process's own memory grows with the batches it makes.

    Resident memory doesn't show it: a forked worker copied 27 MB of a list's reference counts while
    its resident size stood still. Growth must go on in the later half, so warming up isn't it.
    """
    by_pid: dict[int, list[MemoryRecord]] = {}
    for record in figures.recording.memory:
        by_pid.setdefault(record.pid, []).append(record)
    for pid, records in by_pid.items():
        work = _work(figures, pid)
        seen = [record for record in records if work and record.stamp >= work[0]]
        if len(seen) < _LOOKS:
            continue
        settled = seen[len(seen) // 3 :]
        made = [bisect_right(work, record.stamp) for record in settled]
        begin, end = settled[0].unique, settled[-1].unique
        middle = settled[len(settled) // 2].unique
        batches = made[-1] - made[0]
        growth = end - begin
        if batches < figures.limits.memory_batches or growth < figures.limits.memory_least:
            continue
        rate = growth / max(1, begin) * 1000 / batches
        if rate <= figures.limits.memory_growth or 4 * (end - middle) < growth:
            continue
        name = "the main process" if settled[0].worker == UNKNOWN else f"worker {settled[0].worker}"
        return Finding(
            rule="memory-growth",
            severity="alarm",
            verdict=f"the memory of {name} (pid {pid}) grows by {percent(rate)} in 1000 batches",
            evidence={
                "begin_bytes": begin,
                "end_bytes": end,
                "batches": batches,
                "growth_per_1000_share": rate,
            },
            remedy="keep metadata in arrays, not in lists of Python objects (forked workers copy"
            " what they count references of); look for a list or cache in the dataset that only"
            " grows",
        )
    return None


def _work(figures: Figures, pid: int) -> list[int]:
    """Gives the stamps of what a process did: batches made, or steps in the main process."""
    made = sorted(batch.ended for batch in figures.recording.batches if batch.pid == pid)
    return made or sorted(step.began for step in figures.recording.steps)


def _danger(
    rule: str, verdict: str, evidence: dict[str, float | int | str], remedy: str
) -> Finding:
    return Finding(rule=rule, severity="alarm", verdict=verdict, evidence=evidence, remedy=remedy)
