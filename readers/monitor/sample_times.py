"""Times of single samples, in the thread that reads them; on demand, since it takes time itself."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any, SupportsIndex, TypeVar

from typing_extensions import ParamSpec

from readers.monitor.failure import contained
from readers.monitor.keys import key_of
from readers.monitor.record import UNKNOWN
from readers.monitor.ring import RingWriter
from readers.monitor.sample_words import (
    LATENCIES,
    LATENCY_WIDTH,
    SAMPLE_WIDTH,
    SAMPLES,
    bucket,
    sample_words,
)
from readers.monitor.slowest import Slowest
from readers.span import READ

P = ParamSpec("P")
T = TypeVar("T")


class SampleTimes:
    """Times the samples of each batch; the slowest and the latencies go into rings."""

    def __init__(self, directory: Path, *, worker: int, slowest: int) -> None:
        """Makes the rings.

        Args:
            directory: Where.
            worker: Number of the worker.
            slowest: How many samples are worth a record.

        Raises:
            OSError: As for `RingWriter`.
        """
        self._samples = RingWriter(directory, kind=SAMPLES, width=SAMPLE_WIDTH, worker=worker)
        self._latencies = RingWriter(directory, kind=LATENCIES, width=LATENCY_WIDTH, worker=worker)
        self._size = slowest
        self._slowest: Slowest[None] = Slowest(slowest)
        self._counts = [0] * LATENCY_WIDTH
        self._spent: Sequence[int] = ()
        self._dataset: object = None
        self._indices: list[object] = []
        self._took: list[int] = []
        self._read: list[int] = []

    def begin(self, spent: Sequence[int]) -> None:
        """Begins a batch.

        Args:
            spent: The clock's times of that batch by stage, as they grow.
        """
        self._spent = spent
        for known in (self._indices, self._took, self._read):
            known.clear()

    def read(self, get: Callable[[Any], T], index: Any, dataset: object) -> T:  # noqa: ANN401 - as the dataset has it
        """Reads the next sample of the batch.

        Args:
            get: Gives the sample.
            index: What `get` takes.
            dataset: Who may know the sample's key.
        """
        read, began = self._spent[READ], perf_counter_ns()
        sample = get(index)
        self._took.append(perf_counter_ns() - began)
        self._read.append(self._spent[READ] - read)
        self._indices.append(index)
        self._dataset = dataset
        return sample

    def also(self, call: Callable[P, T]) -> Callable[P, T]:
        """Gives a function as one whose calls are charged to the batch's samples in turn."""
        places = iter(range(len(self._took)))

        def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            began = perf_counter_ns()
            result = call(*args, **kwargs)
            self._took[next(places)] += perf_counter_ns() - began
            return result

        return timed

    @contained
    def end(self) -> None:
        """Ends the batch: what is among the slowest goes into the ring, and the counts do."""
        counts = self._counts
        for index, took, read in zip(self._indices, self._took, self._read, strict=True):
            counts[bucket(took, 0)] += 1
            if read:
                counts[bucket(read, 1)] += 1
            if took > self._slowest.least:
                self._keep(index, took, read or UNKNOWN)
        self._latencies.append(counts)

    def _keep(self, index: Any, took: int, read: int) -> None:  # noqa: ANN401 - as the dataset has it
        number, key = UNKNOWN, ""
        if isinstance(index, SupportsIndex):
            number, key = operator.index(index), key_of(self._dataset, index)
        self._slowest.add(key or str(index), took, None)
        self._samples.append(sample_words(number, took, read, key))
