"""A worker within this process."""

from __future__ import annotations

from readers.loading.maker import BatchMaker
from readers.loading.stopwatch import ClockSource
from readers.loading.task import Task


class LocalWorker:
    """Makes batches in the thread that asks for them.

    Args:
        maker: What it works with.
        clocks: Where its clock comes from.
    """

    def __init__(self, maker: BatchMaker, clocks: ClockSource) -> None:
        self._maker = maker
        self._clocks = clocks

    def make(self, task: Task, /) -> object:
        """Makes a batch."""
        return self._maker.make(task, self._clocks)

    def interrupt(self) -> None:
        """Makes `make` end before its next sample."""
        self._maker.stop()
