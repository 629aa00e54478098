"""The clock of one thread: charges each moment of making a batch to one stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import Any, TypeVar

from readers.monitor.batch_contents import batch_bytes
from readers.monitor.counters import NOTHING, Counts, ThreadCounters
from readers.monitor.failure import failures
from readers.monitor.record import UNKNOWN
from readers.monitor.ring import BATCH, FAILURES, HEARTBEAT, STAGE_BITS, RingWriter
from readers.monitor.sample_times import SampleTimes
from readers.span import COLLATE, DATASET, IDLE, TRANSFORM, Clock, here

T = TypeVar("T")

_STAGES = COLLATE + 1
_COUNTED_EVERY = 2_000_000
"""Nanoseconds; of shorter batches only some are counted, since counting takes a hundredth of it."""


class StageClock:
    """Charges the time of each batch to exclusive stages and writes the batch into a ring.

    A batch begins in the dataset stage. `readers.span` tells of reading, decoding and transforming
    within it; `collate` ends it. The stages add up to the time from `begin` to `end` because each
    moment is charged to the one that is on.

    Attributes:
        open: Whether a batch is being made.
        samples: Samples of that batch; whoever reads them counts them up.
        times: Times single samples; None unless that is asked for.
    """

    def __init__(
        self,
        ring: RingWriter,
        *,
        os_counters: bool = True,
        alone: bool = False,
        times: SampleTimes | None = None,
    ) -> None:
        """Begins with no batch.

        Args:
            ring: Where batches go.
            os_counters: Whether the system's counters are read, of each batch that takes two
                milliseconds; of shorter ones now and then.
            alone: Whether the thread makes batches and does nothing else of note.
            times: Times single samples, if that is asked for.
        """
        self.times = times
        self._ring = ring
        self._words = ring.words
        self._counters = ThreadCounters(alone=alone) if os_counters else None
        self._counting = False
        self._counted = 0
        self._spent = [0] * _STAGES
        self._left: list[int] = []
        self._stage = IDLE
        self._since = self._began = 0
        self._counts = NOTHING
        self._batch = self._epoch = UNKNOWN
        self._outer: Clock | None = None
        self.open = False
        self.samples = 0

    def begin(self, batch: int = UNKNOWN, epoch: int = UNKNOWN) -> None:
        """Begins a batch, in the dataset stage; one that was not ended is forgotten.

        Args:
            batch: Number of the batch in its epoch.
            epoch: Number of the epoch.
        """
        self._batch, self._epoch = batch, epoch
        self._spent = [0] * _STAGES
        self._counts = NOTHING
        self.samples = 0
        if self.times is not None:
            self.times.begin(self._spent)
        if self.open:
            self._left.clear()
        else:
            self._outer, here.clock, self.open = here.clock, self, True
        now = perf_counter_ns()
        if self._counters is not None:
            now = self._start_counting(self._counters, now)
        self._stage = DATASET
        self._since = self._began = now
        words = self._words
        words[BATCH] = batch
        words[HEARTBEAT] = now << STAGE_BITS | DATASET

    def enter(self, stage: int, /) -> None:
        """Charges from now on to a stage of `readers.span`, until `leave`."""
        now = perf_counter_ns()
        self._spent[self._stage] += now - self._since
        self._left.append(self._stage)
        self._stage, self._since = stage, now
        self._words[HEARTBEAT] = now << STAGE_BITS | stage

    def leave(self) -> None:
        """Charges from now on to the stage that was on before."""
        if not self._left:
            return  # the batch was begun, or ended, within the span
        now = perf_counter_ns()
        self._spent[self._stage] += now - self._since
        self._stage = stage = self._left.pop()
        self._since = now
        self._words[HEARTBEAT] = now << STAGE_BITS | stage

    def timed(
        self,
        stage: int,
        call: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        /,
    ) -> T:
        """Calls something and charges its time to a stage: `enter` and `leave` at two thirds."""
        now = perf_counter_ns()
        spent, outer = self._spent, self._stage
        spent[outer] += now - self._since
        self._stage, self._since = stage, now
        self._words[HEARTBEAT] = now << STAGE_BITS | stage
        try:
            return call(*args, **kwargs)
        finally:
            if self.open and self._spent is spent:  # else it was ended, or begun anew, meanwhile
                now = perf_counter_ns()
                spent[self._stage] += now - self._since
                self._stage, self._since = outer, now
                self._words[HEARTBEAT] = now << STAGE_BITS | outer

    def collated(self, nanoseconds: int, /) -> None:
        """Charges to collating what was charged to transforming, by who has timed small parts.

        Args:
            nanoseconds: How long; not before it was charged to transforming.
        """
        self._spent[TRANSFORM] -= nanoseconds
        self._spent[COLLATE] += nanoseconds

    def collate(self) -> None:
        """Ends dataset and transform: the counters stop, and time is charged to collating."""
        try:
            if self._counting and self._counters is not None:
                wall = perf_counter_ns() - self._began
                collating = self._spent[COLLATE]
                self._counts = _within(wall, collating, *self._counters.since_start())
            now = perf_counter_ns()
            self._spent[self._stage] += now - self._since
            self._left.clear()
            self._stage, self._since = COLLATE, now
            self._words[HEARTBEAT] = now << STAGE_BITS | COLLATE
        except Exception as error:  # noqa: BLE001 - as `contained`, at a third of its cost
            failures.add(error)

    def end(self, batch: object = None) -> None:
        """Ends the batch and writes it into the ring.

        Args:
            batch: What was made; its bytes are counted.
        """
        now = perf_counter_ns()
        try:
            spent = self._spent
            spent[self._stage] += now - self._since
            _, dataset, read, decode, transform, collate = spent
            cpu, queued, called, stored, faults = self._counts
            ring = self._ring
            ring.append(
                (
                    self._batch,
                    self._epoch,
                    ring.written,
                    self.samples,
                    self._began,
                    dataset + read + decode,
                    read or UNKNOWN,
                    decode or UNKNOWN,
                    transform,
                    collate,
                    cpu,
                    queued,
                    called,
                    stored,
                    faults,
                    batch_bytes(batch),
                )
            )
            if self.times is not None:
                self.times.end()
        except Exception as error:  # noqa: BLE001 - as `contained`, at a third of its cost
            failures.add(error)
        self._close(now)

    def abandon(self) -> None:
        """Forgets the batch, because making it failed."""
        self._close(perf_counter_ns())

    def rest(self) -> None:
        """Tells those who watch that nothing goes on, though the batch may go on later."""
        self._ring.beat(IDLE)

    def _start_counting(self, counters: ThreadCounters, now: int) -> int:
        """Counts this batch if it is due; gives the time at which that is decided."""
        if now - self._counted >= _COUNTED_EVERY:
            self._counting = True
            self._counted = now
            counters.start(now)
            return perf_counter_ns()
        if self._counting:
            self._counting = False
            counters.pause()
        return now

    def _close(self, now: int) -> None:
        if self.open:
            here.clock, self._outer, self.open = self._outer, None, False
        self._left.clear()
        words = self._words
        if failures.count:
            words[FAILURES] = failures.count
        words[HEARTBEAT] = now << STAGE_BITS | IDLE


def _within(wall: int, collating: int, cpu: int, queued: int, *others: int) -> Counts:
    """Holds the times on and waiting for a CPU to those of reading and transforming.

    Args:
        wall: Time since the batch was begun.
        collating: Part of it that was spent in collating, which is on a CPU or waits for one.
        cpu: Time on a CPU.
        queued: Time waiting for one, which may hold the waking up before the batch.
        others: The other counts.
    """
    called, stored, faults = others
    if queued == UNKNOWN:
        return cpu, queued, called, stored, faults
    queued = min(queued, max(0, wall - cpu))
    kept = max(0.0, 1 - collating / max(1, cpu + queued))
    return int(cpu * kept), int(queued * kept), called, stored, faults
