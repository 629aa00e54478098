"""Orders that depend on a seed alone: the same on every machine and with every NumPy.

All functions rest on splitmix64 (Steele, Lea and Flood, https://doi.org/10.1145/2660193.2660195).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GAMMA = 0x9E3779B97F4A7C15
_FIRST_FACTOR = 0xBF58476D1CE4E5B9
_SECOND_FACTOR = 0x94D049BB133111EB
_ALL_BITS = (1 << 64) - 1


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
    return mix(mix(seed) ^ number)


def mix(state: int) -> int:
    """Makes a number out of another that has nothing to do with it, both 0 to 2**64 - 1."""
    # One number takes a tenth of the time that an array of one takes.
    mixed = (state + _GAMMA) & _ALL_BITS
    mixed = ((mixed ^ (mixed >> 30)) * _FIRST_FACTOR) & _ALL_BITS
    mixed = ((mixed ^ (mixed >> 27)) * _SECOND_FACTOR) & _ALL_BITS
    return mixed ^ (mixed >> 31)


def _splitmix64(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed: NDArray[np.uint64] = state + np.uint64(_GAMMA)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_FIRST_FACTOR)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_SECOND_FACTOR)
    mixed ^= mixed >> np.uint64(31)
    return mixed
