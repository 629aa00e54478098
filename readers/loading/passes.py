"""The passes of a loader over its source, one after the other."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from readers.errors import OptionError
from readers.loading.crew import Crew
from readers.loading.delivery import Delivery
from readers.loading.maker import Items
from readers.loading.stopwatch import ClockSources, Unmeasured
from readers.monitor.numbering import EpochCounter
from readers.progress import Progress, State
from readers.sampling import Sampling


class Crews(Protocol):
    """Where the workers of a pass come from."""

    def open(self, workers: int, clocks: ClockSources, /) -> Crew:
        """Gives the workers of a pass."""

    def close(self) -> None:
        """Ends what stays from pass to pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How batches are made, as far as the monitor wants to know."""

    workers: int
    threads: bool
    prefetch: int
    in_order: bool
    batch_size: int | None

    def __post_init__(self) -> None:
        if self.workers < 0 or self.prefetch < 1:
            raise OptionError(
                f"workers is {self.workers} and prefetch {self.prefetch}: at least 0 and 1 are "
                "needed"
            )


class Passes:
    """Gives one pass after the other when iterated; a new one ends the one before.

    Attributes:
        dataset: What is read.
        manner: How.
        clocks: Where workers get their clocks; put here by the monitor.
        turns: Counts the passes; put here by the monitor.
    """

    def __init__(self, dataset: Items, sampling: Sampling, crews: Crews, manner: Manner) -> None:
        self.dataset = dataset
        self.manner = manner
        self.clocks: ClockSources = Unmeasured
        self.turns = EpochCounter()
        self._sampling = sampling
        self._crews = crews
        self._progress = self._next = Progress(sampling, 0)
        self._running: Callable[[], Delivery | None] = _nothing

    def __len__(self) -> int:
        count = self._sampling.count()
        if count is None:
            raise TypeError(f"these batches have no length: {self._sampling}")
        return count

    def __iter__(self) -> Delivery:
        self._end_pass()
        self._progress, self._next = self._next, Progress(self._sampling, self._next.epoch + 1)
        manner, count = self.manner, self._progress.count()
        workers = manner.workers if count is None else min(manner.workers, count)
        delivery = Delivery(
            self._progress,
            self._crews.open(workers, self.clocks),
            ahead=max(1, workers * manner.prefetch),
            in_order=manner.in_order,
            turn=self.turns.number,
        )
        self._running = weakref.ref(delivery)
        return delivery

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass go over that epoch; one that was restored goes on where it was."""
        if epoch != self._next.epoch:
            self._next = Progress(self._sampling, epoch)
        self._progress = self._next

    def state(self) -> State:
        """Gives how far the loop has come."""
        return (self._next if self._progress.done else self._progress).state()

    def restore(self, state: Mapping[str, object]) -> None:
        """Makes the next pass go on where the state was taken."""
        self._end_pass()
        self._progress = self._next = Progress.restore(self._sampling, state)

    def close(self) -> None:
        """Ends the pass that goes on and all workers."""
        self._end_pass()
        self._crews.close()

    def _end_pass(self) -> None:
        if (delivery := self._running()) is not None:
            delivery.supersede()


def _nothing() -> None:
    return None
