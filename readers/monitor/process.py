"""Threads of processes, told apart by number and start, because numbers are used again."""

from __future__ import annotations

from pathlib import Path

from readers.monitor.record import UNKNOWN

_STATE = 0
_STARTED = 19
_GONE = frozenset({"Z", "X"})


def started(pid: int, thread: int) -> int:
    """Tells when a thread started.

    Args:
        pid: Its process.
        thread: Its native id, which for the first thread of a process is the same number.

    Returns:
        Clock ticks since boot; `UNKNOWN` where it is gone, dead but not waited for, or the system
        doesn't tell.
    """
    try:
        stat = Path(f"/proc/{pid}/task/{thread}/stat").read_text("ascii", "replace")
    except OSError:
        return UNKNOWN
    # The name of the program, in brackets, may hold blanks and brackets itself.
    fields = stat.rpartition(")")[2].split()
    if len(fields) <= _STARTED or fields[_STATE] in _GONE:
        return UNKNOWN
    return int(fields[_STARTED])


def alive(pid: int, thread: int, start: int) -> bool:
    """Tells whether the thread that started then still runs."""
    now = started(pid, thread)
    return now != UNKNOWN and start in {now, UNKNOWN}
