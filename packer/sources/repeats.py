"""Finds values that occur more than once in a column too long for a Python set."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def repeats(values: NDArray[np.uint64]) -> Iterator[list[int]]:
    """Finds the indices that share a value, in order, one list a value.

    Args:
        values: Hashes or the like, shape (rows,).
    """
    order = np.argsort(values, kind="stable")
    ends = np.flatnonzero(np.diff(values[order])) + 1
    starts = np.concatenate((np.zeros(1, np.int64), ends))
    lengths = np.diff(np.append(starts, len(values)))
    for start, length in zip(starts[lengths > 1], lengths[lengths > 1], strict=True):
        yield [int(index) for index in order[start : start + length]]
