"""Where the threads of a process stand, without any tool: the process writes it when it is asked.

A process that makes batches has `faulthandler` answer a signal. The handler is C code and takes no
lock, so it also answers while the interpreter is held. The file that it writes to lies among the
rings. Who asks finds it by the open files of that process, and asks only a process that catches the
signal, because any other would die of it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import time
from pathlib import Path
from typing import Final, NamedTuple

SUFFIX: Final = ".stack"
SIGNAL: Final = signal.SIGRTMIN + 7
"""A real-time signal, because the others have their users."""

_PATIENCE: Final = 2.0
_LOOK_EVERY: Final = 0.02
_CAUGHT: Final = "SigCgt:"
_HEADING: Final = "most recent call first"


class _Answering(NamedTuple):
    """Where a process answers; one that was forked has to open a file of its own."""

    pid: int
    path: Path
    file: int


_answering: list[_Answering] = []
"""The last one, if any."""


def answer(directory: Path) -> None:
    """Makes this process answer `ask` in that directory, unless the signal is somebody else's.

    Args:
        directory: Of the rings.

    Raises:
        OSError: The file can't be made.
    """
    pid = os.getpid()
    path = file_in(directory, pid)
    before = _answering[-1] if _answering else None
    if before is None and signal.getsignal(SIGNAL) is not signal.SIG_DFL:
        return
    if before is not None and (before.pid, before.path) == (pid, path):
        return
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    faulthandler.register(SIGNAL, file, all_threads=True)
    _answering[:] = [_Answering(pid, path, file)]
    if before is not None:
        os.close(before.file)


def file_in(directory: Path, pid: int) -> Path:
    """Names the file that a process answers in."""
    return directory / f"{pid}{SUFFIX}"


def ask(pid: int) -> str | None:
    """Asks a process where its threads stand.

    Returns:
        For each thread its calls, the most recent first; None where the process doesn't answer.
    """
    with contextlib.suppress(OSError, ValueError):
        file = _file_of(pid)
        if file is None or not _catches(pid):
            return None
        before = file.stat().st_size
        os.kill(pid, SIGNAL)
        return _written(file, before)
    return None


def _file_of(pid: int) -> Path | None:
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            path = entry.readlink()
            if path == file_in(path.parent, pid) and path.is_file():
                return path
    return None


def _catches(pid: int) -> bool:
    for line in Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines():
        name, _, mask = line.partition("\t")
        if name == _CAUGHT:
            return bool(int(mask, 16) >> SIGNAL - 1 & 1)
    return False


def _written(file: Path, before: int) -> str | None:
    """Gives what is written from now on, when it has been complete for a while."""
    deadline = time.monotonic() + _PATIENCE
    seen = ""
    while time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY)
        with file.open("rb") as stream:
            stream.seek(before)
            text = stream.read().decode("utf-8", "replace")
        if text == seen and _HEADING in text:
            return text
        seen = text
    return seen or None
