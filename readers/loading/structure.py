"""Samples and batches that are dicts, tuples, named tuples and lists of values, nested at will."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Structure: TypeAlias = dict[Any, Any] | tuple[Any, ...] | list[Any]


def keys_of(structure: Structure) -> Collection[object]:
    """Gives the keys of a dict or the places of a sequence; equal for structures of one shape."""
    return structure.keys() if isinstance(structure, dict) else range(len(structure))


def pairs_of(structure: Structure) -> Iterable[tuple[object, object]]:
    """Gives the values with their keys or places."""
    return structure.items() if isinstance(structure, dict) else enumerate(structure)


def build_like(kind: type[Structure], keys: Iterable[object], values: list[Any]) -> Structure:
    """Builds a structure of the same kind with other values, in the order of the keys."""
    if issubclass(kind, dict):
        return dict(zip(keys, values, strict=True))
    if issubclass(kind, list):
        return values
    return tuple(values) if kind is tuple else kind(*values)  # a named tuple


def map_arrays(batch: object, function: Callable[[NDArray[Any]], object]) -> object:
    """Applies a function to every array in a batch."""
    if isinstance(batch, np.ndarray):
        return function(batch)
    if isinstance(batch, (dict, tuple, list)):
        values = [map_arrays(value, function) for _, value in pairs_of(batch)]
        return build_like(type(batch), keys_of(batch), values)
    return batch
