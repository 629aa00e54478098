"""Orders that depend on a seed alone: the same on every machine and with every NumPy.

Both functions rest on splitmix64 (Steele, Lea and Flood, https://doi.org/10.1145/2660193.2660195).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def permutation(samples: int, seed: int) -> NDArray[np.int64]:
    """Sorts the numbers below `samples` by a hash of seed and number.

    Args:
        samples: How many.
        seed: 0 to 2**64 - 1.

    Returns:
        int64, shape (samples,).
    """
    numbers = np.arange(samples, dtype=np.uint64)
    with np.errstate(over="ignore"):
        hashed = _splitmix64(numbers + _splitmix64(np.array([seed], np.uint64)))
    return np.argsort(hashed, kind="stable")


def derive_seed(seed: int, number: int) -> int:
    """Makes one of many unrelated seeds out of a seed.

    Args:
        seed: 0 to 2**64 - 1.
        number: Which one, 0 to 2**64 - 1: an epoch, a worker.

    Returns:
        0 to 2**64 - 1.
    """
    with np.errstate(over="ignore"):
        mixed = _splitmix64(np.array([seed], np.uint64)) ^ np.array([number], np.uint64)
        return int(_splitmix64(mixed)[0])


def _splitmix64(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed: NDArray[np.uint64] = state + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
