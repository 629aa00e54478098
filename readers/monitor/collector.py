"""Gathers what the rings of a run hold, bounded in memory."""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from itertools import islice, repeat
from pathlib import Path
from time import monotonic, perf_counter_ns
from typing import NamedTuple, TypeVar

from readers.errors import CorruptDatasetError
from readers.monitor.memory import memory_of
from readers.monitor.record import (
    UNKNOWN,
    BatchRecord,
    LoaderFacts,
    MemoryRecord,
)
from readers.monitor.recording import Recording
from readers.monitor.ring import CAPACITY, SUFFIX, RingReader
from readers.monitor.sample_board import SampleBoard
from readers.monitor.sample_words import LATENCIES, LATENCY_WIDTH, SAMPLE_WIDTH, SAMPLES
from readers.monitor.stacks import file_in
from readers.monitor.words import (
    BATCH_WIDTH,
    BATCHES,
    STEP_WIDTH,
    STEPS,
    batch_record,
    epoch_of,
    step_record,
    words_of,
)
from readers.monitor.worker_state import is_alive, worker_state
from readers.span import IDLE

_WIDTHS = {
    BATCHES: BATCH_WIDTH,
    STEPS: STEP_WIDTH,
    SAMPLES: SAMPLE_WIDTH,
    LATENCIES: LATENCY_WIDTH,
}
_EPOCHS_COUNTED = 4
_UNREAD = CAPACITY // 8
_SEARCH_EVERY = 0.02
"""Seconds between two looks for the rings of threads that are still to come."""

T = TypeVar("T")


class _Maker(NamedTuple):
    """Who made a batch."""

    worker: int
    pid: int
    thread: int


class Collector:
    """Reads the rings of a run as they fill. Threads may share it.

    The records are kept as the bytes they came in and are made when somebody asks.

    Attributes:
        expected: Threads that are to make batches; as long as there are fewer, `made` looks for
            their rings.
    """

    def __init__(
        self,
        directory: Path,
        *,
        keep: int = 10_000,
        slowest: int = 64,
        owner: bool = False,
        on_batch: Callable[[BatchRecord], None] | None = None,
    ) -> None:
        """Begins with no ring.

        Args:
            directory: Of the rings.
            keep: Batches and steps that are kept, the last ones.
            slowest: Samples that are kept, if they are timed.
            owner: Whether this is the main process of the run: it gets its own steps by
                `add_step`, and removes the rings of dead threads.
            on_batch: Called with each batch, one at a time.
        """
        self.expected = 0
        self._search_due = 0.0
        self._directory = directory
        self._owner = owner
        self._on_batch = on_batch
        self._lock = threading.Lock()
        self._rings: dict[Path, RingReader] = {}
        self._refused: set[Path] = set()
        self._making: tuple[RingReader, ...] = ()
        self._batches: deque[tuple[_Maker, bytes]] = deque(maxlen=keep)
        self._steps: deque[bytes] = deque(maxlen=keep)
        self._memory: deque[MemoryRecord] = deque(maxlen=keep)
        self._board = SampleBoard(slowest)
        self._made: Counter[tuple[int, ...]] = Counter()
        self._lost = 0
        self._died: set[Path] = set()

    @property
    def failures(self) -> int:
        """Failures of the monitor in other processes, and rings that are none."""
        workers: Counter[int] = Counter()
        for ring in self._rings.values():
            if ring.pid != os.getpid():
                workers[ring.pid] = max(workers[ring.pid], ring.failures)
        return workers.total() + len(self._refused)

    def made(self, epoch: int) -> int:
        """Tells the batches of an epoch that were finished, and reads the rings if need be.

        Those that weren't read yet count as of that epoch.
        """
        if len(self._making) < self.expected and monotonic() >= self._search_due:
            self.collect()
            self._search_due = monotonic() + _SEARCH_EVERY
        waiting = 0
        for ring in self._making:
            unread = ring.unread
            if unread >= _UNREAD:
                self.drain()
                return self._made[epoch,]
            waiting += unread
        return self._made[epoch,] + waiting

    def add_step(self, record: bytes) -> None:
        """Takes a step of this process, which needn't be read from its ring."""
        self._steps.append(record)

    def collect(self) -> None:
        """Looks for new rings and reads all of them."""
        with self._lock:
            for path in self._directory.glob(f"*{SUFFIX}"):
                if path not in self._rings and path not in self._refused:
                    self._open(path)
            self._list_makers()
            self._drain()

    def drain(self) -> None:
        """Reads the rings that are known."""
        with self._lock:
            self._drain()

    def forget_dead(self) -> None:
        """Lets go of threads that have ended; their batches are kept."""
        with self._lock:
            for path, ring in list(self._rings.items()):
                if ring.kind != STEPS and not is_alive(ring):
                    self._read(ring)
                    self._lost += ring.lost if ring.kind == BATCHES else 0
                    self._board.end(path)
                    self._died.discard(path)
                    del self._rings[path]
                    if self._owner:
                        ring.remove()
                        if ring.pid != os.getpid():
                            file_in(self._directory, ring.pid).unlink(missing_ok=True)
            self._list_makers()

    def note_died(self) -> None:
        """Remembers who died so far: the epoch breaks off, and the loader may end the others."""
        with self._lock:
            self._died |= self._dying()

    def sample_memory(self, main: int) -> None:
        """Takes the memory of the main process and of the workers' processes.

        Args:
            main: The main process.
        """
        with self._lock:
            workers = {ring.pid: ring.worker for ring in self._rings.values()}
        for pid, worker in ({main: UNKNOWN} | workers).items():
            if (memory := memory_of(pid)) is not None:
                record = MemoryRecord(
                    stamp=perf_counter_ns(),
                    worker=UNKNOWN if pid == main else worker,
                    pid=pid,
                    unique=memory.unique,
                    proportional=memory.proportional,
                )
                with self._lock:
                    self._memory.append(record)

    def recording(self, facts: LoaderFacts, *, last: int | None = None) -> Recording:
        """Makes a recording of what is kept.

        Args:
            facts: Of the loader.
            last: Batches and steps to give, the last ones; None for all.
        """
        with self._lock:
            batches, steps = _last(self._batches, last), _last(self._steps, last)
            memory = _last(self._memory, last)
            died = self._died | self._dying()
            workers = [worker_state(ring, died=ring.path in died) for ring in self._making]
            lost = self._lost + sum(
                ring.lost for ring in self._rings.values() if ring.kind == BATCHES
            )
        return Recording(
            facts,
            batches=[_batch(maker, record) for maker, record in batches],
            steps=[step_record(words_of(record)) for record in steps],
            workers=sorted(workers, key=lambda state: (state.worker, state.pid, state.thread)),
            memory=memory,
            samples=self._board.samples(),
            latencies=self._board.latencies(),
            lost=lost,
        )

    def _open(self, path: Path) -> None:
        try:
            self._rings[path] = _known(RingReader(path))
        except FileNotFoundError:
            return  # another process has removed it meanwhile
        except CorruptDatasetError:
            self._refused.add(path)
            raise

    def _dying(self) -> set[Path]:
        """Tells who ended in the middle of a batch of the epoch that goes on."""
        ended = [ring for ring in self._making if not is_alive(ring) and ring.heartbeat[0] != IDLE]
        # Looked at after the workers: an epoch that is over by now may have been over by then.
        for loop in self._rings.values():
            if loop.kind == STEPS and loop.heartbeat[0] != IDLE and is_alive(loop):
                return {ring.path for ring in ended if ring.heartbeat[1] >= loop.heartbeat[1]}
        return set()

    def _list_makers(self) -> None:
        self._making = tuple(ring for ring in self._rings.values() if ring.kind == BATCHES)

    def _drain(self) -> None:
        for ring in self._rings.values():
            if ring.written != ring.seen and not (self._owner and ring.kind == STEPS):
                self._read(ring)

    def _read(self, ring: RingReader) -> None:
        records = ring.drain()
        if ring.kind == BATCHES:
            self._add_batches(ring, records)
        elif ring.kind == SAMPLES:
            for record in records:
                self._board.add_sample(words_of(record), ring.worker)
        elif ring.kind == LATENCIES:
            for record in records[-1:]:
                self._board.set_latencies(ring.path, words_of(record))
        else:
            self._steps.extend(records)

    def _add_batches(self, ring: RingReader, records: Sequence[bytes]) -> None:
        maker = _Maker(ring.worker, ring.pid, ring.thread)
        self._batches.extend(zip(repeat(maker), records))
        self._made.update(map(epoch_of, records))
        if self._on_batch is not None:
            for record in records:
                self._on_batch(_batch(maker, record))
        if len(self._made) > _EPOCHS_COUNTED:
            del self._made[min(self._made)]


def _known(ring: RingReader) -> RingReader:
    if _WIDTHS.get(ring.kind) != ring.width:
        raise CorruptDatasetError(
            f"{ring.path} holds records of kind {ring.kind} with {ring.width} words, which this "
            "version doesn't know",
            path=str(ring.path),
        )
    return ring


def _last(records: Sequence[T] | deque[T], count: int | None) -> list[T]:
    first = 0 if count is None else max(0, len(records) - count)
    return list(islice(records, first, None))


def _batch(maker: _Maker, record: bytes) -> BatchRecord:
    words = words_of(record)
    return batch_record(words, worker=maker.worker, pid=maker.pid, thread=maker.thread)
