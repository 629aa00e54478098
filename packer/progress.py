"""How far a long job has got."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Progress:
    """One report."""

    phase: str
    """What is being done: `pack`, `index`, `verify` or `compare`."""
    done: int
    """Samples dealt with, those of an earlier run included; 0 where unknown."""
    total: int
    """Samples in all; 0 where unknown."""
    resumed: int
    """Samples that an earlier run had dealt with."""
    nbytes: int
    """Bytes read since the job began."""
    seconds: float
    """Time since the job began."""


OnProgress: TypeAlias = Callable[[Progress], None]

_SECONDS_BETWEEN = 0.1


class Meter:
    """Counts samples and bytes, and reports now and then."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._began = time.monotonic()
        self._reported = 0.0
        self._phase, self._total, self._resumed = "", 0, 0
        self._done = 0
        self._nbytes = 0

    def begin(self, phase: str, total: int = 0, resumed: int = 0) -> None:
        """Begins a phase."""
        self._phase, self._total, self._resumed, self._done = phase, total, resumed, resumed
        self._nbytes = 0
        self._began = time.monotonic()
        self._report()

    def count(self, samples: int, nbytes: int) -> None:
        """Counts samples that are done, and bytes that were read for them."""
        self._done += samples
        self._nbytes += nbytes
        if time.monotonic() - self._reported >= _SECONDS_BETWEEN or self._done == self._total:
            self._report()

    @property
    def seconds(self) -> float:
        """Time since the phase began."""
        return time.monotonic() - self._began

    def _report(self) -> None:
        self._reported = time.monotonic()
        if self._on_progress is not None:
            self._on_progress(
                Progress(
                    self._phase,
                    self._done,
                    self._total,
                    self._resumed,
                    self._nbytes,
                    self.seconds,
                )
            )
