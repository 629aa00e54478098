"""How a worker is, by its ring."""

from __future__ import annotations

from time import perf_counter_ns

from readers.monitor.process import alive
from readers.monitor.record import WorkerState
from readers.monitor.ring import RingReader
from readers.span import COLLATE, IDLE, TRANSFORM

_NAMES = {IDLE: "idle", TRANSFORM: "transform", COLLATE: "collate"}


def is_alive(ring: RingReader) -> bool:
    """Tells whether the thread of a ring still runs."""
    return alive(ring.pid, ring.thread, ring.start)


def worker_state(ring: RingReader, *, died: bool) -> WorkerState:
    """Tells how a worker is now.

    Args:
        ring: Its ring.
        died: Whether it ended in the middle of a batch that was wanted.
    """
    stage, since = ring.heartbeat
    return WorkerState(
        worker=ring.worker,
        pid=ring.pid,
        thread=ring.thread,
        stage=_NAMES.get(stage, "dataset"),
        since=since,
        seen=perf_counter_ns(),
        batches=ring.written,
        alive=is_alive(ring),
        died=died,
    )
