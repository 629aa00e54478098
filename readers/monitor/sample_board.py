"""What the threads of a loader tell of single samples, put together."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from readers.monitor.record import LatencyRecord, SampleRecord
from readers.monitor.sample_words import LATENCY_WIDTH, latency_records, sample_record
from readers.monitor.slowest import Slowest
from readers.monitor.words import Words


class SampleBoard:
    """The slowest samples of all threads, and how often a sample took how long."""

    def __init__(self, size: int) -> None:
        """Begins empty.

        Args:
            size: Samples that are kept.
        """
        self._slowest: Slowest[SampleRecord] = Slowest(size)
        self._counts: dict[Hashable, Words] = {}
        self._ended = np.zeros(LATENCY_WIDTH, np.int64)

    def add_sample(self, words: Words, worker: int) -> None:
        """Takes a sample that was among the slowest of its thread."""
        record = sample_record(words, worker)
        self._slowest.add((record.index, record.key), record.took, record)

    def set_latencies(self, thread: Hashable, words: Words) -> None:
        """Takes the counts of a thread as they are now."""
        self._counts[thread] = words

    def end(self, thread: Hashable) -> None:
        """Keeps the counts of a thread that has ended."""
        self._ended += np.array(self._counts.pop(thread, 0))

    def samples(self) -> list[SampleRecord]:
        """Gives the slowest samples, the slowest first."""
        return self._slowest.things()

    def latencies(self) -> list[LatencyRecord]:
        """Gives the counts, parts by themselves, short times first."""
        total = self._ended.copy()
        for words in self._counts.values():
            total += words
        return list(latency_records(total.tolist()))
