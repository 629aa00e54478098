"""What is done for a run every second."""

from __future__ import annotations

import os
from time import monotonic

from readers.monitor.collector import Collector
from readers.monitor.failure import contained


class Caretaker:
    """Reads the rings, and now and then looks at the memory of the processes."""

    def __init__(self, collector: Collector, memory_every: float) -> None:
        """Begins with a look at the memory.

        Args:
            collector: Of the run.
            memory_every: Seconds between two looks at the memory.
        """
        self._collector = collector
        self._memory_every = memory_every
        self._memory_due = 0.0

    @contained
    def __call__(self) -> None:
        """Does what is due."""
        self._collector.collect()
        if monotonic() >= self._memory_due:
            self._memory_due = monotonic() + self._memory_every
            self._collector.sample_memory(os.getpid())
