"""Turns samples into a batch, one at a time and straight into the batch's memory.

A batch is built as its samples are: of dicts, tuples, named tuples and lists, with a column in
place of each value. A column is an array where all samples have arrays of one shape and dtype, an
array of numbers (`int64`, `float64`, `bool`, or the dtype of NumPy's scalars) where all have
numbers, and otherwise a list of what the samples have, such as pictures of mixed sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from readers.loading.structure import Structure, build_like, keys_of, pairs_of
from readers.loading.transform import Slots

Allocate: TypeAlias = Callable[[tuple[int, ...], "np.dtype[Any]"], "NDArray[Any]"]
"""Gives memory for a column: its shape and dtype."""


class Column(Protocol):
    """One value of each sample."""

    def add(self, value: object) -> bool:
        """Takes the next sample's value; False, and nothing taken, if it isn't like the others."""

    def slots(self) -> Slots:
        """Gives where the next sample's arrays belong."""

    def values(self) -> Sequence[object]:
        """Gives back the values taken so far."""

    def finish(self) -> object:
        """Gives the column as it is in the batch."""


_NUMBERS = (bool, int, float, np.number, np.bool_)


@runtime_checkable
class _SupportsArray(Protocol):
    def __array__(self) -> NDArray[Any]: ...


_ARRAYS = (np.ndarray, _SupportsArray)
"""The first of them is told at once, which a protocol isn't."""


class Columns:
    """The batch that is being made.

    Args:
        size: Number of its samples.
        allocate: Gives memory for its arrays.
    """

    def __init__(self, size: int, allocate: Allocate) -> None:
        self._size = size
        self._allocate = allocate
        self._root: Column | None = None

    def add(self, value: object) -> None:
        """Takes the next sample."""
        if self._root is None:
            self._root = _column(value, self._size, self._allocate)
        elif not self._root.add(value):
            self._root = _Listed([*self._root.values(), value])

    def slots(self) -> Slots:
        """Gives where the next sample's arrays belong; None before the first one."""
        return None if self._root is None else self._root.slots()

    def finish(self) -> object:
        """Gives the batch; an empty list if there were no samples."""
        return [] if self._root is None else self._root.finish()


def _column(value: object, size: int, allocate: Allocate) -> Column:
    if isinstance(value, _NUMBERS):
        return _Numbers(value)
    if isinstance(value, _ARRAYS):
        return _Arrays(np.asarray(value), size, allocate)
    if isinstance(value, (dict, tuple, list)):
        return _Group(value, size, allocate)
    return _Listed([value])


class _Numbers:
    def __init__(self, first: object) -> None:
        self._values = [first]

    def add(self, value: object) -> bool:
        if not isinstance(value, _NUMBERS):
            return False
        self._values.append(value)
        return True

    def slots(self) -> Slots:
        return None

    def values(self) -> list[object]:
        return self._values

    def finish(self) -> object:
        integers = all(type(value) is int for value in self._values)
        return np.array(self._values, np.int64 if integers else None)


class _Arrays:
    def __init__(self, first: NDArray[Any], size: int, allocate: Allocate) -> None:
        self._first = first
        self._size = size
        self._allocate = allocate
        self._stacked: NDArray[Any] | None = None
        self._slot: NDArray[Any] | None = None
        self._count = 1

    def add(self, value: object) -> bool:
        if not isinstance(value, _ARRAYS):
            return False
        array = np.asarray(value)
        if array.shape != self._first.shape or array.dtype != self._first.dtype:
            return False
        slot = self.slots()
        if array is not slot:
            slot[...] = array
        self._slot = None
        self._count += 1
        return True

    def slots(self) -> NDArray[Any]:
        if self._slot is None:
            self._slot = self._stack()[self._count, ...]
        return self._slot

    def values(self) -> list[object]:
        if self._stacked is None:
            return [self._first]
        # Copies, because a view would keep the memory of the whole batch.
        return [row.copy() for row in self._stacked[: self._count]]

    def finish(self) -> object:
        return self._stack()

    def _stack(self) -> NDArray[Any]:
        if self._stacked is None:
            self._stacked = self._allocate((self._size, *self._first.shape), self._first.dtype)
            self._stacked[0] = self._first
        return self._stacked


class _Listed:
    def __init__(self, values: list[object]) -> None:
        self._values = values

    def add(self, value: object) -> bool:
        self._values.append(value)
        return True

    def slots(self) -> Slots:
        return None

    def values(self) -> list[object]:
        return self._values

    def finish(self) -> object:
        return self._values


class _Group:
    """A dict, tuple or list: a column for each of its values."""

    def __init__(self, first: Structure, size: int, allocate: Allocate) -> None:
        self._type = type(first)
        self._columns = {key: _column(value, size, allocate) for key, value in pairs_of(first)}
        self._keys = self._columns.keys() if isinstance(first, dict) else keys_of(first)
        self._count = 1

    def add(self, value: object) -> bool:
        if not isinstance(value, self._type) or keys_of(value) != self._keys:
            return False
        columns = self._columns
        for key, item in pairs_of(value):
            if not columns[key].add(item):
                columns[key] = _Listed([*columns[key].values(), item])
        self._count += 1
        return True

    def slots(self) -> Slots:
        slots = {key: column.slots() for key, column in self._columns.items()}
        return slots if issubclass(self._type, dict) else list(slots.values())

    def values(self) -> list[object]:
        columns = [column.values() for column in self._columns.values()]
        return [self._build([column[row] for column in columns]) for row in range(self._count)]

    def finish(self) -> object:
        return self._build([column.finish() for column in self._columns.values()])

    def _build(self, values: list[object]) -> object:
        return build_like(self._type, self._keys, values)
