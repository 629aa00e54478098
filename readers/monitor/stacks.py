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
import threading
import time
from pathlib import Path
from typing import Final

from readers.monitor.failure import contained

SUFFIX: Final = ".stack"
SIGNAL: Final = signal.SIGRTMIN + 7
"""A real-time signal, because the others have their users."""

_PATIENCE: Final = 2.0
_LOOK_EVERY: Final = 0.02
_CAUGHT: Final = "SigCgt:"
_HEADING: Final = "most recent call first"


class _Answer:
    """Where this process answers: in the run that began last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._path: Path | None = None
        self._file = -1

    def forked(self) -> None:
        """Begins anew in a process that was forked, perhaps while another thread was at it."""
        self._lock = threading.Lock()

    def give_in(self, path: Path) -> None:
        with self._lock:
            free = signal.getsignal(SIGNAL) is signal.SIG_DFL
            if path == self._path or (self._path is None and not free):
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            file = os.open(path, flags, 0o600)
            faulthandler.register(SIGNAL, file, all_threads=True)
            if self._path is not None:
                os.close(self._file)
            self._path, self._file = path, file


_answer = _Answer()
os.register_at_fork(after_in_child=_answer.forked)


@contained
def answer(directory: Path) -> None:
    """Makes this process answer `ask`, unless the signal is somebody else's.

    Args:
        directory: Of the rings.
    """
    _answer.give_in(file_in(directory, os.getpid()))


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
