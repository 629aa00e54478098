"""What a process and its workers take, as /proc tells it: proc(5), `stat` and `smaps_rollup`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_KIB = 1024
_GROUP, _TIMES = 2, slice(11, 15)
"""Where in `stat`, counted after the name, are the process group, and the ticks spent in user and
kernel mode by the process and by children that have ended."""


def cpu_seconds() -> float:
    """Gives the seconds that the processor spent on this process group, in steps of a tick."""
    ticks = sum(sum(map(int, fields[_TIMES])) for _, fields in _members())
    return ticks / os.sysconf("SC_CLK_TCK")


def memory() -> tuple[int, int]:
    """Gives the memory of this process group, what several share counted once.

    Returns:
        All of it in bytes (PSS), and without pages of mapped files, which the kernel may drop.
    """
    everything = anonymous = 0
    for process, _ in _members():
        with suppress(OSError):  # it has ended meanwhile
            for line in (process / "smaps_rollup").read_text(encoding="ascii").splitlines():
                name, _, value = line.partition(":")
                if name == "Pss":
                    everything += int(value.split()[0]) * _KIB
                elif name in ("Pss_Anon", "Pss_Shmem"):
                    anonymous += int(value.split()[0]) * _KIB
    return everything, anonymous


def _members() -> Iterator[tuple[Path, list[str]]]:
    group = str(os.getpgrp())
    for process in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            fields = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            if fields[_GROUP] == group:
                yield process, fields
