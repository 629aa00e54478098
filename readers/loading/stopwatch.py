"""What making a batch asks of the clock that measures it."""

from __future__ import annotations

from typing import Protocol

from readers.monitor.sample_times import SampleTimes


class Clock(Protocol):
    """Charges the time of a batch to its stages; see `readers.monitor.clock.StageClock`."""

    samples: int
    times: SampleTimes | None

    def enter(self, stage: int, /) -> None:
        """Charges from now on to a stage of `readers.span`."""

    def leave(self) -> None:
        """Charges from now on to the stage before."""

    def collated(self, nanoseconds: int, /) -> None:
        """Charges to collating what was charged to transforming."""

    def collate(self) -> None:
        """Ends reading and transforming."""

    def end(self, batch: object, /) -> None:
        """Ends the batch."""

    def abandon(self) -> None:
        """Forgets the batch."""


class ClockSource(Protocol):
    """Where a worker gets its clock; see `readers.monitor.clock_source.ClockSource`."""

    def begin(self, batch: int, epoch: int, /) -> Clock | None:
        """Begins a batch on this thread; None where nothing is measured."""


class ClockSources(Protocol):
    """Gives each worker its source of clocks; picklable."""

    def __call__(self, worker: int, /) -> ClockSource:
        """Gives the one of the worker of that number."""


class Unmeasured:
    """A source of no clocks, and the clock that measures nothing."""

    def __init__(self, worker: int) -> None:
        self.worker = worker
        self.samples = 0
        self.times: SampleTimes | None = None

    def begin(self, batch: int, epoch: int, /) -> None:
        """Gives none."""

    def enter(self, stage: int, /) -> None:
        """Does nothing."""

    def leave(self) -> None:
        """Does nothing."""

    def collated(self, nanoseconds: int, /) -> None:
        """Does nothing."""

    def collate(self) -> None:
        """Does nothing."""

    def end(self, batch: object, /) -> None:
        """Does nothing."""

    def abandon(self) -> None:
        """Does nothing."""
