"""How well an order mixes what lies side by side, held against a full shuffle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readers.permutation import permutation


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleQuality:
    """Each figure is 0 or more without any shuffling, and 1 for a full shuffle, about."""

    displacement: float
    """How far samples come from their place: the mean, divided by a third of their number, which
    is what a full shuffle gives (the mean distance of two random points of a line)."""
    parting: float
    """How far samples that lie side by side come apart: the mean, divided likewise."""
    classes: float | None
    """Classes in a batch, divided by those of a full shuffle; None without labels."""


def shuffle_quality(
    order: NDArray[np.int64], labels: NDArray[np.int32] | None, batch_size: int
) -> ShuffleQuality:
    """Measures an order.

    Args:
        order: All samples once, int64, shape (samples,).
        labels: Of the samples, int32, shape (samples,).
        batch_size: Samples that follow each other in a batch.
    """
    samples = len(order)
    places = np.empty(samples, np.int64)
    places[order] = np.arange(samples)
    third = max(samples / 3, 1)
    mixed = None
    if labels is not None and samples:
        whole = _classes_in_a_batch(labels[permutation(samples, 0)], batch_size)
        mixed = _classes_in_a_batch(labels[order], batch_size) / whole
    return ShuffleQuality(
        displacement=_mean(np.abs(places - np.arange(samples))) / third,
        parting=_mean(np.abs(np.diff(places))) / third,
        classes=mixed,
    )


def _mean(values: NDArray[np.int64]) -> float:
    return float(values.mean()) if values.size else 0.0


def _classes_in_a_batch(labels: NDArray[np.int32], batch_size: int) -> float:
    batches = -(-len(labels) // batch_size)
    numbers = np.arange(len(labels)) // batch_size
    return len(np.unique(np.stack([numbers, labels]), axis=1).T) / batches
