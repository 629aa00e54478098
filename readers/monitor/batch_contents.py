"""What is in a batch: how many bytes, how many samples."""

from __future__ import annotations

from collections.abc import Mapping

from readers.monitor.record import UNKNOWN

_MOST = 64
_DEEPEST = 4


def batch_bytes(batch: object, *, deepest: int = _DEEPEST) -> int:
    """Adds up the arrays of a batch, nested in dicts, lists and tuples.

    Args:
        batch: What the collate function gave.
        deepest: How deep dicts, lists and tuples may be nested.

    Returns:
        Bytes; `UNKNOWN` where it holds other things than arrays, is nested deeper, or one of its
        lists holds more than 64 things: the count would cost more than it tells.
    """
    size = getattr(batch, "nbytes", None)
    if isinstance(size, int):
        return size
    parts = _parts(batch)
    if not parts or len(parts) > _MOST or not deepest:
        return UNKNOWN
    total = 0
    for part in parts:
        size = batch_bytes(part, deepest=deepest - 1)
        if size == UNKNOWN:
            return UNKNOWN
        total += size
    return total


def batch_samples(batch: object) -> int:
    """Tells the samples of a batch by the first array, else by the length of the list.

    Returns:
        Samples; `UNKNOWN` where it holds neither.
    """
    first, depth = batch, 0
    while (shape := getattr(first, "shape", None)) is None:
        parts = _parts(first)
        depth += 1
        if not parts or depth == _DEEPEST:
            return len(batch) if isinstance(batch, (list, tuple)) else UNKNOWN
        first = parts[0]
    return int(shape[0]) if shape else UNKNOWN


def _parts(batch: object) -> list[object] | tuple[object, ...]:
    if isinstance(batch, (list, tuple)):
        return batch
    return list(batch.values()) if isinstance(batch, Mapping) else ()
