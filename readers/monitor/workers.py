"""The batches of a recording by the worker that made them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from readers.monitor.record import UNKNOWN, BatchRecord


def worker_name(record: BatchRecord) -> str:
    """Names who made a batch: a worker's number, else its process or thread."""
    if record.worker != UNKNOWN:
        return f"worker {record.worker}"
    if record.thread == record.pid:
        return f"process {record.pid}"
    return f"thread {record.thread}"


def by_worker(batches: Sequence[BatchRecord]) -> dict[str, list[BatchRecord]]:
    """Sorts batches by worker, the workers by number."""
    found: defaultdict[str, list[BatchRecord]] = defaultdict(list)
    for record in batches:
        found[worker_name(record)].append(record)
    return dict(sorted(found.items(), key=lambda item: (item[1][0].worker, item[1][0].thread)))


def span(batches: Sequence[BatchRecord]) -> float:
    """Gives the seconds from the first batch's begin to the last one's end, epochs by themselves.

    What lies between two epochs, such as a validation run, doesn't count. 0 where the stamps aren't
    known, as in a log.
    """
    began: dict[int, int] = {}
    ended: dict[int, int] = {}
    for record in batches:
        if record.began == UNKNOWN:
            return 0.0
        began[record.epoch] = min(record.began, began.get(record.epoch, record.began))
        ended[record.epoch] = max(record.ended, ended.get(record.epoch, record.ended))
    return sum(ended[epoch] - began[epoch] for epoch in began) * 1e-9


def busy_shares(batches: Sequence[BatchRecord]) -> Mapping[str, float]:
    """Gives the share of the time in which each worker made batches."""
    whole = span(batches)
    if not whole:
        return {}
    return {
        name: sum(record.fetch for record in made) * 1e-9 / whole
        for name, made in by_worker(batches).items()
    }
