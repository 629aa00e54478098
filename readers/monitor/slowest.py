"""The slowest of many things, each counted once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Slowest(Generic[T]):
    """Keeps what took longest.

    Attributes:
        least: What takes no longer can't enter.
    """

    def __init__(self, size: int) -> None:
        """Begins empty.

        Args:
            size: How many are kept, at least 1.
        """
        self._size = size
        self._kept: dict[Hashable, tuple[int, T]] = {}
        self.least = -1

    def add(self, name: Hashable, took: int, thing: T) -> None:
        """Keeps a thing if it is among the slowest; of one name the slowest time counts."""
        if took <= max(self.least, self._kept[name][0] if name in self._kept else -1):
            return
        self._kept[name] = took, thing
        if len(self._kept) > self._size:
            del self._kept[min(self._kept, key=self._time)]
        if len(self._kept) == self._size:
            self.least = min(map(self._time, self._kept))

    def things(self) -> list[T]:
        """Gives them, the slowest first."""
        return [self._kept[name][1] for name in sorted(self._kept, key=self._time, reverse=True)]

    def _time(self, name: Hashable) -> int:
        return self._kept[name][0]
