"""What a worker is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from readers.sampling import Indices


@dataclass(frozen=True, slots=True)
class Task:
    """A batch to be made."""

    turn: int
    """Number of the pass, as the monitor counts."""
    epoch: int
    number: int
    """Of the batch in the pass."""
    indices: Indices
