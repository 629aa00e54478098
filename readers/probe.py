"""Measures in a moment how a storage answers, on files that lie there anyway; writes nothing."""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Final

from readers.requests import Requests

_SMALL: Final = 4096
_READS_ALONE: Final = 8
_WAVES: Final = 2
_DEPTHS: Final = (4, 16, 32, 64)
_WORTH: Final = 1.15
"""Gain for which more requests at once are worth having."""
_MEMORY: Final = 20e-6
"""Seconds below which a small read came out of memory, not from a medium."""
_MOST_BYTES: Final = 48 << 20
_LEAST, _MOST = 4 << 10, 1 << 20

Read = Callable[[int, int, int], object]
"""`os.pread`, as far as a probe uses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """How a storage answered."""

    latency: float
    """Seconds for a small read, one at a time: the median."""
    requests: int
    """Reads at once beyond which more gave little."""
    gain: float
    """How many times as many of them were answered as one at a time."""
    bandwidth: float
    """Bytes per second with those."""
    gap: int
    """Bytes that take as long to transfer as one more read costs, with those."""
    nbytes: int
    """Bytes that were read to know it."""

    @property
    def is_cold(self) -> bool:
        """Whether the medium answered: what lies in memory says nothing of it."""
        return self.latency > _MEMORY


def probe(
    files: Sequence[tuple[int, int]], size: int, *, seconds: float, read: Read = os.pread
) -> Probe | None:
    """Measures on random ranges, which are put out of this machine's memory before.

    Args:
        files: Descriptor and size in bytes of each file to read from.
        size: Bytes of a typical read.
        seconds: How long it may take, about.
        read: Reads (descriptor, length, offset).

    Returns:
        None where the files are too small to tell, or the storage doesn't answer in time.
    """
    size = min(max(size, _LEAST), _MOST)
    files = [(descriptor, nbytes) for descriptor, nbytes in files if nbytes >= size]
    if sum(nbytes for _, nbytes in files) < 2 * size * _DEPTHS[0]:
        return None
    return _Measurement(files, size, perf_counter() + seconds, read).run()


class _Measurement:
    def __init__(self, files: Sequence[tuple[int, int]], size: int, end: float, read: Read) -> None:
        self._files = files
        self._size = size
        self._end = end
        self._read = read
        self._left = _MOST_BYTES
        self._ranges = self._random_ranges()

    def run(self) -> Probe | None:
        latency, alone = self._each(1, _SMALL), self._each(1, self._size)
        if latency is None or alone is None:
            return None
        each = {1: alone}
        for depth in _DEPTHS:
            if (took := self._each(depth, self._size)) is not None:
                each[depth] = took
        best = min(each.values()) * _WORTH
        chosen = min(depth for depth, took in each.items() if took <= best)
        best = each[chosen]
        small = self._each(chosen, _SMALL)
        bandwidth = self._size / best
        spent = 0.0 if small is None else small - _SMALL / bandwidth
        return Probe(
            latency=latency,
            requests=chosen,
            gain=alone / best,
            bandwidth=bandwidth,
            gap=max(0, int(spent * bandwidth)),
            nbytes=_MOST_BYTES - self._left,
        )

    def _each(self, depth: int, size: int) -> float | None:
        """Gives the seconds that a read takes when so many are under way; None without time."""
        with Requests(depth) as requests:
            if depth > 1:
                took = self._timed(requests, _WAVES * depth, size)
                return None if took is None else took / (_WAVES * depth)
            alone = [self._timed(requests, 1, size) for _ in range(_READS_ALONE)]
        known = [took for took in alone if took is not None]
        return statistics.median(known) if known else None

    def _timed(self, requests: Requests, count: int, size: int) -> float | None:
        """Reads so many ranges; None when the time or the bytes are used up."""
        left = self._end - perf_counter()
        self._left -= count * size
        if left <= 0 or self._left < 0:
            return None
        jobs = [
            partial(self._read, descriptor, size, offset)
            for descriptor, offset in islice(self._ranges, count)
        ]
        began = perf_counter()
        try:
            requests.begin(jobs).wait(left)
        except TimeoutError:
            return None
        return perf_counter() - began

    def _random_ranges(self) -> Iterator[tuple[int, int]]:
        chance = random.Random()  # noqa: S311 - other ranges each time, so that they are cold
        weights = [nbytes for _, nbytes in self._files]
        while True:
            ((descriptor, nbytes),) = chance.choices(self._files, weights)
            offset = chance.randrange(nbytes - self._size + 1)
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(descriptor, offset, self._size, os.POSIX_FADV_DONTNEED)
            yield descriptor, offset
