"""What the system counts of a thread: time on and waiting for a CPU, bytes read, page faults."""

from __future__ import annotations

import contextlib
import os
from resource import RUSAGE_THREAD, getrusage
from time import thread_time_ns
from typing import Final, TypeAlias

from readers.monitor.record import UNKNOWN

Counts: TypeAlias = tuple[int, int, int, int, int]
"""Time on a CPU and time waiting for one (ns), bytes that read calls gave, bytes that came from
storage, major page faults; `UNKNOWN` each where the system doesn't tell."""

NOTHING: Final[Counts] = (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)

_WAITED = 1
_READ_CALLS_BYTES = 1
_STORAGE_BYTES = 9
_LONGEST = 512


class ThreadCounters:
    """The counters of the thread that makes this object.

    The files under /proc/thread-self belong to the thread that opens them, so they are opened here,
    once; each is then one `pread`.
    """

    def __init__(self, *, alone: bool) -> None:
        """Opens the files.

        Args:
            alone: Whether the thread does nothing of note between two batches, as a worker does.
                The files are then read once a batch: what they count in between, such as the few
                bytes of a task, goes to the next batch.
        """
        self._alone = alone
        self._follows = False
        self._schedstat = _open("schedstat")
        self._io = _open("io")
        self._cpu = self._queued = self._called = self._stored = 0
        self._own = 0  # bytes of these files that were read
        self._faults = getrusage(RUSAGE_THREAD).ru_majflt

    def pause(self) -> None:
        """Tells that batches are made without being counted."""
        self._follows = False

    def start(self) -> None:
        """Counts from here."""
        if not self._follows:
            self._read_files()
        self._cpu = thread_time_ns()

    def since_start(self) -> Counts:
        """Gives what was counted since `start`, without the bytes of these files.

        Page faults are counted since the last time, to save a call of the system.
        """
        cpu = thread_time_ns() - self._cpu
        called, stored, queued = self._called, self._stored, self._queued
        self._read_files()
        self._follows = self._alone
        before, self._faults = self._faults, getrusage(RUSAGE_THREAD).ru_majflt
        return (
            cpu,
            UNKNOWN if self._schedstat is None else self._queued - queued,
            UNKNOWN if self._io is None else self._called - called,
            UNKNOWN if self._io is None else self._stored - stored,
            self._faults - before,
        )

    def _read_files(self) -> None:
        if self._schedstat is not None:
            data = os.pread(self._schedstat, _LONGEST, 0)
            self._queued = int(data.split()[_WAITED])
            self._own += len(data)
        if self._io is not None:
            data = os.pread(self._io, _LONGEST, 0)
            fields = data.split()
            self._called = int(fields[_READ_CALLS_BYTES]) - self._own
            self._stored = int(fields[_STORAGE_BYTES])
            self._own += len(data)

    def __del__(self) -> None:
        for descriptor in (self._schedstat, self._io):
            if descriptor is not None:
                os.close(descriptor)


def _open(name: str) -> int | None:
    """Opens a file of this thread; None where the system doesn't have it or doesn't let us."""
    with contextlib.suppress(OSError):
        descriptor = os.open(f"/proc/thread-self/{name}", os.O_RDONLY)
        with contextlib.suppress(OSError):
            os.pread(descriptor, _LONGEST, 0)
            return descriptor
        os.close(descriptor)
    return None
