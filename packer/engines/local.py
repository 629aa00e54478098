"""Prepares samples in threads of this process.

Reading, decoding, resizing, encoding and checksumming all release the interpreter's lock, so
threads use all cores without copying an image between processes.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

_BLOCKS_PER_WORKER = 4
_BLOCK_BYTES = 4 << 20
_READY_BYTES = 64 << 20
_SECONDS_TO_JUDGE = 0.05
_WAITING_BELOW = 0.9


class Weighed(Protocol):
    """A result that knows its weight in memory."""

    @property
    def weight(self) -> int:
        """Bytes."""


Result = TypeVar("Result", bound=Weighed)


def worker_count(workers: int) -> int:
    """Resolves the number of workers; 0 is one a core that this process may use."""
    return workers or len(os.sched_getaffinity(0))


class InOrder(Generic[Result]):
    """Runs `work` on positions in threads and gives the results in order.

    Threads run ahead of the consumer by a bounded number of blocks, fewer if results are large.
    Where the process mostly waits, for a cold disk or a network, more of them keep more requests
    in flight.
    """

    def __init__(
        self, work: Callable[[int], Result], *, workers: int, block: int, most: int = 0
    ) -> None:
        """Starts nothing yet.

        Args:
            work: What is to be done; safe from threads.
            workers: Number of threads to begin with.
            block: Positions that a thread takes at once, unless results are large.
            most: Number of threads to grow to while the process waits; 0 for no growth.
        """
        self._work = work
        self._workers = 0
        self._first = workers
        self._most = most
        self._block = block
        self._tasks: SimpleQueue[tuple[int, NDArray[np.int64]] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[int, list[Result], BaseException | None]] = SimpleQueue()
        self._stopped = False

    def run(self, positions: NDArray[np.int64]) -> Iterator[Result]:
        """Gives the result of each position, in order.

        An error of `work` is raised in the place of its result.
        """
        self._start(self._first)
        idle = _Idleness()
        ready: dict[int, tuple[list[Result], BaseException | None]] = {}
        start, sent, wanted, block, limit = 0, 0, 0, 1, self._workers
        try:
            while start < len(positions) or wanted < sent:
                while start < len(positions) and sent - wanted < limit:
                    self._tasks.put((sent, positions[start : start + block]))
                    start += block
                    sent += 1
                while wanted not in ready:
                    number, results, error = self._done.get()
                    ready[number] = (results, error)
                results, error = ready.pop(wanted)
                wanted += 1
                yield from results
                if error is not None:
                    raise error
                if self._workers < self._most and idle.is_high():
                    self._start(min(self._workers, self._most - self._workers))
                weight = max(1, sum(result.weight for result in results))
                block = max(1, min(self._block, len(results) * _BLOCK_BYTES // weight))
                limit = max(
                    self._workers, min(self._workers * _BLOCKS_PER_WORKER, _READY_BYTES // weight)
                )
        finally:
            self._stopped = True
            for _ in range(self._workers):
                self._tasks.put(None)

    def _start(self, threads: int) -> None:
        for number in range(self._workers, self._workers + threads):
            threading.Thread(target=self._serve, name=f"prepare-{number}", daemon=True).start()
        self._workers += threads

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None and not self._stopped:
            number, positions = task
            results: list[Result] = []
            failure: BaseException | None = None
            try:
                for position in positions.tolist():
                    results.append(self._work(position))  # noqa: PERF401 - keeps those before an error
            except BaseException as error:  # noqa: BLE001 - handed to the consumer, who raises it
                failure = error
            self._done.put((number, results, failure))


class _Idleness:
    """Looks, now and then, at how much of a core the process has used since it looked before."""

    def __init__(self) -> None:
        self._wall = time.monotonic()
        self._cpu = time.process_time()

    def is_high(self) -> bool:
        """Tells whether less than about a core was used; False before there is enough to judge."""
        wall, cpu = time.monotonic(), time.process_time()
        if wall - self._wall < _SECONDS_TO_JUDGE:
            return False
        busy = (cpu - self._cpu) / (wall - self._wall)
        self._wall, self._cpu = wall, cpu
        return busy < _WAITING_BELOW
