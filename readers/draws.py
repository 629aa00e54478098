"""Random numbers for what happens to one sample, the same whoever happens to transform it.

A loader says which sample its thread is at, by giving the seed that belongs to the sample; a
transform takes its random numbers from `current_draws`. So they depend on neither the number of
workers, nor their kind, nor the order in which they get on.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from readers.permutation import mix

SeedOfSample: TypeAlias = Callable[[], int]
"""Gives a seed, 0 to 2**64 - 1. Called once a sample, and only if something is random."""

_STEP = 0x9E3779B97F4A7C15
_ALL_BITS = (1 << 64) - 1
_UNIT = 2.0**-53


class Draws:
    """A stream of random numbers (splitmix64), equal on every machine and with every library.

    It costs less to begin than to draw a number from NumPy, which takes 10 µs to seed a generator.

    Args:
        seed: 0 to 2**64 - 1, or what gives it when the first number is drawn.
    """

    __slots__ = ("_seed", "_state")

    def __init__(self, seed: int | SeedOfSample) -> None:
        self._seed = seed
        self._state = seed if isinstance(seed, int) else None

    def bits(self) -> int:
        """Draws one of 0 to 2**64 - 1."""
        state = self._state
        if state is None:
            state = self._seed if isinstance(self._seed, int) else self._seed()
        self._state = (state + _STEP) & _ALL_BITS
        return mix(state)

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """Draws from low, inclusive, to high, exclusive but for rounding."""
        return low + (high - low) * ((self.bits() >> 11) * _UNIT)

    def below(self, count: int) -> int:
        """Draws one of 0 to count - 1."""
        return self.bits() * count >> 64

    def generator(self) -> np.random.Generator:
        """Draws a generator of NumPy's: a different one with each call."""
        return np.random.Generator(np.random.PCG64(self.bits()))


class _Here(threading.local):
    seed: SeedOfSample | None = None
    draws: Draws | None = None


_here = _Here()


def begin_sample(seed: SeedOfSample | None) -> None:
    """Says that this thread turns to a sample, or with None that it is at none."""
    _here.seed = seed
    _here.draws = None


def current_draws() -> Draws:
    """Gives the random numbers of the sample that this thread transforms.

    Several calls for a sample give one stream, which goes on. Outside of a loader each call gives a
    stream of its own, whose seed Python's `random` draws.
    """
    if _here.seed is None:
        return Draws(random.getrandbits(64))
    if _here.draws is None:
        _here.draws = Draws(_here.seed)
    return _here.draws
