"""Memory of processes, and what is left of the memory that they share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from readers.monitor.record import UNKNOWN

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - looked at, not written to
_UNIQUE = frozenset({"Private_Clean:", "Private_Dirty:", "Private_Hugetlb:"})


class Memory(NamedTuple):
    """Memory of a process in bytes."""

    unique: int
    proportional: int


def memory_of(pid: int) -> Memory | None:
    """Adds up the memory of a process; this takes milliseconds for a large one.

    Returns:
        None where it is gone, or the system doesn't tell.
    """
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii", "replace")
    except OSError:
        return None
    unique = proportional = 0
    for line in rollup.splitlines()[1:]:
        name, kilobytes, *_ = line.split()
        if name in _UNIQUE:
            unique += int(kilobytes) * 1024
        elif name == "Pss:":
            proportional = int(kilobytes) * 1024
    return Memory(unique, proportional)


def shared_memory_free() -> int:
    """Tells the free bytes of /dev/shm; `UNKNOWN` where there is none."""
    try:
        state = os.statvfs(_SHARED_MEMORY)
    except OSError:
        return UNKNOWN
    return state.f_bavail * state.f_frsize
