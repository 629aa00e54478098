"""A ring of the last records of one thread, in a memory-mapped file.

One thread writes, any process reads, none locks. The file is words of 8 bytes, signed, in the
machine's own order::

    0 magic    1 version  2 kind       3 words of a record  4 capacity  5 pid  6 start of the thread
    7 thread   8 worker   9 written   10 heartbeat         11 batch    12 failures  13-15 zero

and then `capacity` records, each followed by a word with its CRC-32. The checksum starts from the
number of the record: a record that is half written, or of another lap, doesn't match. The heartbeat
is one word, `stamp << 3 | stage`, so that it can't be torn.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Final
from zlib import crc32

from readers.errors import CorruptDatasetError
from readers.monitor.process import started
from readers.monitor.record import UNKNOWN
from readers.span import IDLE

SUFFIX: Final = ".ring"
CAPACITY: Final = 256
STAGE_BITS: Final = 3
HEARTBEAT: Final = 10
BATCH: Final = 11
FAILURES: Final = 12

_MAGIC: Final = int.from_bytes(b"packring", "little")
_VERSION: Final = 1
_MAGIC_AT, _VERSION_AT, _KIND, _WIDTH, _CAPACITY, _PID, _START, _THREAD, _WORKER, _WRITTEN = range(
    10
)
_HEADER_WORDS: Final = 16
_WORD: Final = 8
_MAX_CAPACITY: Final = 1 << 16
_MAX_WIDTH: Final = 64


class RingWriter:
    """The ring of the thread that makes it.

    Attributes:
        words: The whole file as words, for the heartbeat: one assignment, 40 ns.
        written: Records written so far.
    """

    def __init__(self, directory: Path, *, kind: int, width: int, worker: int) -> None:
        """Makes the file.

        Args:
            directory: Where; the name is made of the process and the thread.
            kind: What the records are, for the reader.
            width: Words of a record.
            worker: Number of the worker.

        Raises:
            OSError: The file can't be made, or there is no room for it.
        """
        self.written = 0
        self._pack = struct.Struct(f"={width}q").pack
        record = _record(width)
        self._put = record.pack_into
        first = _HEADER_WORDS * _WORD
        self._places = [first + number * record.size for number in range(CAPACITY)]
        pid, thread = os.getpid(), threading.get_native_id()
        size = _size(CAPACITY, width)
        descriptor, name = tempfile.mkstemp(".new", f"{pid}-{thread}-", directory)
        try:
            # Without room for it, writing to the map would end the process by a signal.
            os.posix_fallocate(descriptor, 0, size)
            self._map = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
        self.words = memoryview(self._map).cast("q")
        head = (_MAGIC, _VERSION, kind, width, CAPACITY, pid, started(pid, thread), thread, worker)
        struct.pack_into(f"={len(head)}q", self._map, 0, *head)
        self.words[HEARTBEAT] = IDLE
        self.words[BATCH] = UNKNOWN
        Path(name).rename(Path(name).with_suffix(SUFFIX))

    def beat(self, stage: int) -> None:
        """Tells those who watch what goes on from now on; a stage of `readers.span`."""
        self.words[HEARTBEAT] = perf_counter_ns() << STAGE_BITS | stage

    def append(self, values: Sequence[int]) -> bytes:
        """Writes a record.

        Args:
            values: Its `width` words.

        Returns:
            The record, as `RingReader.drain` gives it.
        """
        number = self.written
        data = self._pack(*values)
        check = crc32(data, number & 0xFFFFFFFF)
        self._put(self._map, self._places[number % CAPACITY], data, check)
        self.written = self.words[_WRITTEN] = number + 1
        return data


class RingReader:
    """A ring, read from any process while it is written.

    Attributes:
        path: The file.
        kind: What the records are.
        pid: Process that writes.
        start: When that thread started, in clock ticks since boot; `UNKNOWN` if unknown.
        thread: Native id of the thread that writes.
        worker: Number of the worker.
        seen: Records that were given out or lost.
        lost: Records that were overwritten before they were read.
    """

    def __init__(self, path: Path) -> None:
        """Opens a ring.

        Raises:
            CorruptDatasetError: It is none.
            OSError: It can't be opened.
        """
        self.path = path
        self.seen = self.lost = 0
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _HEADER_WORDS * _WORD or size % _WORD:
                raise self._corrupt(f"it has {size} bytes")
            self._map = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        self._words = memoryview(self._map).cast("q")
        head = self._words[:_HEADER_WORDS].tolist()
        self._capacity, self._width = head[_CAPACITY], head[_WIDTH]
        if head[_MAGIC_AT] != _MAGIC or head[_VERSION_AT] != _VERSION:
            raise self._corrupt(f"it doesn't begin with the mark of version {_VERSION}")
        if (
            not 0 < self._capacity <= _MAX_CAPACITY
            or not 0 < self._width <= _MAX_WIDTH
            or size != _size(self._capacity, self._width)
        ):
            raise self._corrupt(
                f"{self._capacity} records of {self._width} words don't make {size} bytes"
            )
        self.kind, self.pid, self.start = head[_KIND], head[_PID], head[_START]
        self.thread, self.worker = head[_THREAD], head[_WORKER]
        self._record = _record(self._width)

    @property
    def written(self) -> int:
        """Records written so far."""
        return self._words[_WRITTEN]

    @property
    def unread(self) -> int:
        """Records that `drain` hasn't given out yet."""
        return self._words[_WRITTEN] - self.seen

    @property
    def width(self) -> int:
        """Words of a record."""
        return self._width

    @property
    def heartbeat(self) -> tuple[int, int]:
        """Stage, as numbered in `readers.span`, and the stamp of when it was entered."""
        word = self._words[HEARTBEAT]
        return word & (1 << STAGE_BITS) - 1, word >> STAGE_BITS

    @property
    def batch(self) -> int:
        """Number of the batch that is being made."""
        return self._words[BATCH]

    @property
    def failures(self) -> int:
        """Failures of the monitor in that thread."""
        return self._words[FAILURES]

    def drain(self) -> list[bytes]:
        """Gives the records that weren't given yet; those that came too late count as lost.

        Returns:
            Their words as bytes, which `readers.monitor.words.words_of` makes words of again.

        Raises:
            CorruptDatasetError: The number of records went backwards.
        """
        written = self.written
        if written < self.seen:
            raise self._corrupt(f"it says {written} records after {self.seen}")
        first = max(self.seen, written - self._capacity)
        records: list[bytes] = []
        while first < written:
            place = first % self._capacity
            end = min(written, first + self._capacity - place)
            records += self._read(first, place, end - first)
            first = end
        self.lost += written - self.seen - len(records)
        self.seen = written
        return records

    def _read(self, first: int, place: int, count: int) -> Iterator[bytes]:
        """Gives those of neighbouring records that are whole.

        Args:
            first: Number of the first.
            place: Its place in the file.
            count: How many.
        """
        begin = _HEADER_WORDS * _WORD + place * self._record.size
        data = self._map[begin : begin + count * self._record.size]
        for number, (record, check) in enumerate(self._record.iter_unpack(data), first):
            if crc32(record, number & 0xFFFFFFFF) == check:
                yield record

    def remove(self) -> None:
        """Removes the file; what was opened stays readable."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()

    def _corrupt(self, reason: str) -> CorruptDatasetError:
        return CorruptDatasetError(
            f"{self.path} is no ring of a loader monitor: {reason}", path=str(self.path)
        )


def _record(width: int) -> struct.Struct:
    """Gives the form of a record: its words as bytes, and the checksum."""
    return struct.Struct(f"={width * _WORD}sq")


def _size(capacity: int, width: int) -> int:
    return (_HEADER_WORDS + capacity * (width + 1)) * _WORD
