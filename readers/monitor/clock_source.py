"""Where a worker gets its clock from: what is pickled is the place of the rings, no more."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from readers.monitor import stacks
from readers.monitor.clock import StageClock
from readers.monitor.failure import contained, failures
from readers.monitor.record import UNKNOWN
from readers.monitor.ring import RingWriter
from readers.monitor.sample_times import SampleTimes
from readers.monitor.words import BATCH_WIDTH, BATCHES
from readers.span import here


class WorkerNumber(Protocol):
    """How a worker finds its number; picklable."""

    def __call__(self, batch: int, /) -> int:
        """Tells the number of this worker from where it runs, or from its first batch."""


@dataclass(frozen=True, slots=True)
class ToldByFramework:
    """The number that `get_worker_info()` of the framework tells."""

    module: str
    """Where that function is; the framework has imported it already."""
    field: str = "id"
    """Name of the number in what the function gives."""
    turns: int = 0
    """Workers that get the batches in turn, in a framework that gives nothing to some workers."""

    def __call__(self, batch: int, /) -> int:
        """Asks the framework, or takes it from the number of the first batch."""
        framework = sys.modules.get(self.module)
        info = framework.get_worker_info() if framework is not None else None
        if info is not None:
            return int(getattr(info, self.field))
        return batch % self.turns if self.turns and batch != UNKNOWN else UNKNOWN


class _Clocks(threading.local):
    """The clocks of this thread, by the directory of their rings; None where making one failed."""

    def __init__(self) -> None:
        self.by_directory: dict[str, StageClock | None] = {}


_clocks = _Clocks()


def _forget() -> None:
    """Leaves the clocks to the process that has forked this one."""
    _clocks.by_directory = {}
    here.clock = None


os.register_at_fork(after_in_child=_forget)


@dataclass(frozen=True, slots=True)
class ClockSource:
    """Makes a clock for each thread on its first batch."""

    directory: str
    """Of the rings."""
    worker: WorkerNumber
    os_counters: bool
    samples: int = 0
    """How many of the slowest samples each thread tells of; 0: samples aren't timed."""
    elsewhere: int = UNKNOWN
    """Process in which no batch is made, whatever is called there: the main one of a loader that
    has worker processes."""

    def begin(self, batch: int = UNKNOWN, epoch: int = UNKNOWN) -> StageClock | None:
        """Begins a batch on this thread.

        Args:
            batch: Number of the batch in its epoch.
            epoch: Number of the epoch.

        Returns:
            The clock that runs; None where there is none.
        """
        clock = _clocks.by_directory.get(self.directory) or self._first_clock(batch)
        if clock is not None:
            try:
                clock.begin(batch, epoch)
            except Exception as error:  # noqa: BLE001 - as `contained`, at a third of its cost
                failures.add(error)
                return None
        return clock

    def running(self) -> StageClock | None:
        """Gives the clock of this thread if a batch is being made."""
        clock = _clocks.by_directory.get(self.directory)
        return clock if clock is not None and clock.open else None

    @contained
    def _first_clock(self, batch: int) -> StageClock | None:
        """Makes the clock of this thread, once, whether that works or not."""
        clocks = _clocks.by_directory
        if self.directory not in clocks:
            clocks[self.directory] = None
            if os.getpid() != self.elsewhere:
                clocks[self.directory] = self._make(batch)
        return clocks[self.directory]

    def _make(self, batch: int) -> StageClock:
        directory, worker = Path(self.directory), self.worker(batch)
        ring = RingWriter(directory, kind=BATCHES, width=BATCH_WIDTH, worker=worker)
        stacks.answer(directory)
        times = None
        if self.samples:
            times = SampleTimes(directory, worker=worker, slowest=self.samples)
        return StageClock(ring, os_counters=self.os_counters, alone=worker != UNKNOWN, times=times)
