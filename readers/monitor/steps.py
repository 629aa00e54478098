"""The training loop as the main process sees it: waiting for batches, computing with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any

from readers.monitor.batch_contents import batch_samples
from readers.monitor.failure import contained, failures
from readers.monitor.memory import shared_memory_free
from readers.monitor.record import UNKNOWN, StepRecord
from readers.monitor.words import Words, step_record

_SHARED_MEMORY_EVERY = 20_000_000


class EpochSteps:
    """The steps of one epoch; each is written when the loop asks for the next batch."""

    def __init__(
        self,
        epoch: int,
        *,
        numbered: bool,
        made: Callable[[int], int],
        write: Callable[[Words], bytes],
        keep: Callable[[bytes], object],
        on_step: Callable[[StepRecord], None] | None,
    ) -> None:
        """Begins an epoch.

        Args:
            epoch: Number of the epoch.
            numbered: Whether batches are delivered in the order of their numbers.
            made: Tells how many batches of an epoch were finished so far.
            write: Writes each step that is over, and gives it as it was written.
            keep: Takes what `write` gave.
            on_step: Called with each step when its batch was delivered, compute still unknown.
        """
        self._epoch = epoch
        self._numbered = numbered
        self._made = made
        self._write = write
        self._keep = keep
        self._on_step = on_step
        self._asked = self._ready = UNKNOWN
        self._delivered = 0
        self._got = 0
        self._shared_memory = UNKNOWN
        self._shared_memory_due = 0
        self._samples = UNKNOWN
        self._pending = False

    def ask(self) -> None:
        """The loop asks for a batch."""
        now = perf_counter_ns()
        try:
            if self._pending:
                self._pending = False
                self._keep(self._write(self._words(now - self._got)))
            self._asked, self._ready = now, UNKNOWN
            self._ready = max(0, self._made(self._epoch) - self._delivered)
        except Exception as error:  # noqa: BLE001 - as `contained`, at a third of its cost
            failures.add(error)

    def get(self, batch: object) -> None:
        """The loop got a batch."""
        self._got = now = perf_counter_ns()
        try:
            self._pending = True
            self._delivered += 1
            if now >= self._shared_memory_due:
                self._shared_memory = shared_memory_free()
                self._shared_memory_due = now + _SHARED_MEMORY_EVERY
            self._samples = batch_samples(batch)
            if self._on_step is not None:
                self._on_step(step_record(self._words(UNKNOWN)))
        except Exception as error:  # noqa: BLE001 - as `contained`, at a third of its cost
            failures.add(error)

    @contained
    def end(self) -> None:
        """The epoch is over; how long the last batch was computed with is not known."""
        if self._pending:
            self._pending = False
            self._keep(self._write(self._words(UNKNOWN)))

    def _words(self, compute: int) -> Words:
        """Makes the words of the last step, in the order of the fields of a `StepRecord`."""
        step = self._delivered - 1
        return (
            step,
            self._epoch,
            step if self._numbered else UNKNOWN,
            self._asked,
            self._got - self._asked,
            compute,
            self._samples,
            self._ready,
            self._shared_memory,
        )


class SteppedIterator:
    """Iterates like the loader's iterator and times each step."""

    def __init__(
        self,
        batches: Iterator[Any],
        steps: EpochSteps,
        on_error: Callable[[Exception], object],
        on_end: Callable[[], object],
    ) -> None:
        self._batches = batches
        self._steps = steps
        self._on_error = on_error
        self._on_end: Callable[[], object] | None = on_end

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:  # noqa: ANN401 - whatever the loader gives
        self._steps.ask()
        try:
            batch = next(self._batches)
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(error, StopIteration):
                self._on_error(error)
            self._end()
            raise
        self._steps.get(batch)
        return batch

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the loader's iterator has it
        if name == "_batches":
            raise AttributeError(name)
        return getattr(self._batches, name)

    def __del__(self) -> None:
        self._end()

    def _end(self) -> None:
        if (on_end := self.__dict__.get("_on_end")) is not None:
            self._on_end = None
            self._steps.end()
            on_end()
