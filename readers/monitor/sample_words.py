"""How samples that were timed become the words of a ring, and come back.

A slow sample is its index, its two times and its key, in UTF-8, cut and filled with zeros. The
latencies are counts, first of samples, then of reads, by powers of two of the nanoseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, get_args

from readers.monitor.record import LatencyRecord, Part, SampleRecord
from readers.monitor.words import Words

SAMPLES: Final = 3
LATENCIES: Final = 4

_KEY: Final = struct.Struct("=16q")
_LOWEST: Final = 10
_BUCKETS: Final = 26
_PARTS: Final[tuple[Part, ...]] = get_args(Part)

LATENCY_POWERS: Final = range(_LOWEST + 1, _LOWEST + _BUCKETS)
"""Powers of two of the nanoseconds at which one bucket ends and the next begins."""

SAMPLE_WIDTH: Final = 3 + _KEY.size // 8
LATENCY_WIDTH: Final = len(_PARTS) * _BUCKETS


def sample_words(index: int, took: int, read: int, key: str) -> Words:
    """Makes words of a sample; see `readers.monitor.record.SampleRecord`."""
    text = key.encode("utf-8", "replace")[: _KEY.size].ljust(_KEY.size, b"\0")
    return index, took, read, *_KEY.unpack(text)


def sample_record(words: Sequence[int], worker: int) -> SampleRecord:
    """Makes a sample of its words and of what the head of its ring says."""
    index, took, read, *key = words
    text = _KEY.pack(*key).rstrip(b"\0").decode("utf-8", "ignore")
    return SampleRecord(index=index, key=text, worker=worker, took=took, read=read)


def bucket(nanoseconds: int, part: int) -> int:
    """Gives the place of a time among the counts.

    Args:
        nanoseconds: The time; the first place takes all that are under 2 microseconds, the last
            all from 34 seconds on.
        part: 0 for a sample, 1 for a read.
    """
    power = nanoseconds.bit_length() - 1 - _LOWEST
    return part * _BUCKETS + min(max(0, power), _BUCKETS - 1)


def latency_records(words: Sequence[int]) -> Iterator[LatencyRecord]:
    """Makes records of the counts that aren't zero."""
    for place, count in enumerate(words):
        part, power = divmod(place, _BUCKETS)
        if count:
            begin = 1 << _LOWEST + power if power else 0
            yield LatencyRecord(part=_PARTS[part], begin=begin, count=count)
