"""The one place where a failure of the monitor ends: it is counted and reported, never raised."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from typing import TypeVar

from typing_extensions import ParamSpec

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger("readers.monitor")


class Failures:
    """Failures of the monitor in this process; the first one is logged as a warning."""

    def __init__(self) -> None:
        self.count = 0
        self.first: Exception | None = None

    def forget(self) -> None:
        """Begins anew, in a process that was forked."""
        self.count = 0
        self.first = None

    def add(self, error: Exception) -> None:
        """Counts a failure."""
        self.count += 1
        if self.first is None:
            self.first = error
            _log.warning(
                "the loader monitor failed (%s: %s); training goes on, figures may be missing",
                type(error).__name__,
                error,
                exc_info=error,
            )


failures = Failures()
"""Those of this process; the ring of a worker carries the worker's count."""
os.register_at_fork(after_in_child=failures.forget)


def contained(call: Callable[P, T]) -> Callable[P, T | None]:
    """Makes a call of the monitor safe within the user's training: it gives None if it fails."""

    @functools.wraps(call)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return call(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever it is, training must go on
            failures.add(error)
            return None

    return guarded
