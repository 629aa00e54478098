"""Batch numbers that travel to the workers with the indices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from readers.monitor.proxy import Proxy
from readers.monitor.record import UNKNOWN


class _Announced(threading.local):
    batch: NumberedBatch | None = None


_announced = _Announced()


class NumberedBatch(list[Any]):
    """Indices of a batch that know its number.

    Every framework goes through the indices in the worker that makes the batch: that announces it
    to the dataset's proxy, which sees single indices only.
    """

    __slots__ = ("epoch", "number")

    epoch: int
    number: int

    def __iter__(self) -> Iterator[Any]:
        _announced.batch = self
        return super().__iter__()

    def __reduce__(self) -> tuple[object, ...]:
        return _numbered, (self[:], self.number, self.epoch)


def _numbered(indices: list[Any], number: int, epoch: int) -> NumberedBatch:
    batch = NumberedBatch(indices)  # a Python `__init__` would cost as much again
    batch.number = number
    batch.epoch = epoch
    return batch


def take_announced() -> NumberedBatch | None:
    """Gives the batch that was announced on this thread, once."""
    batch = _announced.batch
    if batch is not None:
        _announced.batch = None
    return batch


class EpochCounter:
    """The number of the epoch that goes on; `UNKNOWN` before the first."""

    def __init__(self) -> None:
        self.number = UNKNOWN

    def next(self) -> int:
        """Begins the next epoch."""
        self.number += 1
        return self.number


class NumberingSampler(Proxy):
    """A sampler of batches whose batches are numbered, where they are lists."""

    _inner: Any
    _epoch: EpochCounter

    def __init__(self, inner: Any, epoch: EpochCounter) -> None:  # noqa: ANN401 - any sampler
        super().__init__(inner)
        self.__dict__["_epoch"] = epoch

    def __iter__(self) -> Iterator[Any]:
        # Started here, as without the monitor, not when the first batch is asked for.
        return _all_numbered(iter(self._inner), self._epoch.number)


def _all_numbered(batches: Iterator[Any], epoch: int) -> Iterator[Any]:
    for number, batch in enumerate(batches):
        yield _numbered(batch, number, epoch) if type(batch) is list else batch
