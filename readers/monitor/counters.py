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
_BLOCK = 512
"""Bytes of a block of `ru_inblock`, in which Linux tells the `read_bytes` of /proc/PID/io."""
_LONGEST = 512
_CALLS_EVERY = 20_000_000
"""Nanoseconds; the file that tells of read calls costs as much as all other counters together."""


class ThreadCounters:
    """The counters of the thread that makes this object.

    The files under /proc/thread-self belong to the thread that opens them, so they are opened here,
    once; each is then one `pread`.
    """

    def __init__(self, *, alone: bool) -> None:
        """Opens the files.

        Args:
            alone: Whether the thread does nothing of note between two batches, as a worker does.
                Counters are then read once a batch: what they count in between, such as the few
                bytes of a task, goes to the next batch.
        """
        self._alone = alone
        self._follows = self._follows_calls = self._counting_calls = False
        self._calls_due = 0
        self._schedstat = _open("schedstat")
        self._io = _open("io")
        self._cpu = self._queued = self._called = self._stored = self._faults = 0
        self._own = 0  # bytes of these files that were read

    def pause(self) -> None:
        """Tells that batches are made without being counted."""
        self._follows = self._follows_calls = False

    def start(self, now: int) -> None:
        """Counts from here.

        Args:
            now: Stamp; read calls are counted of some batches where these are short.
        """
        if not self._follows:
            self._read()
        self._counting_calls = self._io is not None and now >= self._calls_due
        if self._counting_calls:
            self._calls_due = now + _CALLS_EVERY
            if not self._follows_calls:
                self._read_calls()
        self._cpu = thread_time_ns()

    def since_start(self) -> Counts:
        """Gives what was counted since `start`, without the bytes of these files."""
        cpu = thread_time_ns() - self._cpu
        queued, stored, faults, called = self._queued, self._stored, self._faults, self._called
        self._read()
        self._follows = self._alone
        self._follows_calls = self._alone and self._counting_calls
        if self._counting_calls:
            self._read_calls()
        return (
            cpu,
            UNKNOWN if self._schedstat is None else self._queued - queued,
            self._called - called if self._counting_calls else UNKNOWN,
            UNKNOWN if self._io is None else (self._stored - stored) * _BLOCK,
            self._faults - faults,
        )

    def _read(self) -> None:
        usage = getrusage(RUSAGE_THREAD)
        self._stored, self._faults = usage.ru_inblock, usage.ru_majflt
        if self._schedstat is not None:
            data = os.pread(self._schedstat, _LONGEST, 0)
            self._queued = int(data.split()[_WAITED])
            self._own += len(data)

    def _read_calls(self) -> None:
        if self._io is not None:
            data = os.pread(self._io, _LONGEST, 0)
            self._called = int(data.split()[_READ_CALLS_BYTES]) - self._own
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
