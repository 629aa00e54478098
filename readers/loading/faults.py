"""What goes wrong while batches are made, and how the user learns where."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def annotate(error: BaseException, note: str) -> None:
    """Adds a note to an error, as `add_note` does from Python 3.11 on.

    Python 3.10 doesn't print notes; they are in the error's `__notes__` all the same.
    """
    error.__dict__.setdefault("__notes__", []).append(note)


@contextmanager
def annotated(note: Callable[[], str]) -> Iterator[None]:
    """Adds a note to what goes wrong within; it is written only then."""
    try:
        yield
    except Exception as error:
        annotate(error, note())
        raise


def describe_exit(code: int | None) -> str:
    """Says how a process ended, by the exit code that `multiprocessing` gives."""
    if code is None:
        return "no longer answers"
    if code >= 0:
        return f"ended with status {code}; what it had to say is on stderr"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    hint = " (the system does that when memory runs out)" if -code == signal.SIGKILL else ""
    return f"was ended by {name}{hint}"
