"""The upper bound of what a faster loader could give: a few batches, over and over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle, islice
from typing import Generic, TypeVar

Batch = TypeVar("Batch")


class RepeatedBatches(Generic[Batch]):
    """Stands in for a loader: takes its first batches once, then gives them again and again.

    A training loop over it, monitored like any other, runs as if loading cost nothing: no change of
    the loader can make it faster (the idea is SPDL's). Batches are given as the same objects.
    """

    def __init__(self, loader: Iterable[Batch], *, length: int, batches: int = 8) -> None:
        """Takes the batches.

        Args:
            loader: Where they come from; it is closed by whoever made it.
            length: Batches of an epoch.
            batches: How many are kept, at most.
        """
        self._kept = list(islice(loader, batches))
        self._length = length if self._kept else 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Batch]:
        return islice(cycle(self._kept), self._length)
