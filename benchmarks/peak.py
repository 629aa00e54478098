"""Runs `packer` and prints the largest memory it had: `python -m benchmarks.peak ARGUMENT…`.

The process asks for itself, because what its parent would be told includes the parent's own memory.
"""

from __future__ import annotations

import sys
from pathlib import Path

from packer.cli import main

_UNIT = 1024


def memory_of(name: str) -> int:
    """Gives a line of this process's status, such as `VmHWM` or `RssAnon`, in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * _UNIT
    raise ValueError(f"no {name} in /proc/self/status")


if __name__ == "__main__":
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    print(memory_of("VmHWM"), file=sys.stderr)
