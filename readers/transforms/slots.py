"""Where a transform writes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def fitting(slot: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Gives the slot if it is an array of that kind, or else a new array."""
    if isinstance(slot, np.ndarray) and slot.shape == shape and slot.dtype == dtype:
        return slot
    return np.empty(shape, dtype)
