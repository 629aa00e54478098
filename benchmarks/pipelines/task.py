"""What a pipeline is asked to make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
"""Of the random crops: least and greatest share of the area, and width / height."""

Resize: TypeAlias = Literal["bilinear", "linear", "area"]
"""How a crop is resized, as `readers.transforms` names it."""

Batches: TypeAlias = Iterator[tuple[Any, Any]]
"""Batches without end, epoch after epoch: images, `uint8`, RGB, shape (batch, side, side, 3) or
(batch, 3, side, side), and as many labels."""


@dataclass(frozen=True, slots=True)
class Task:
    """What all contestants of a contest make alike."""

    source: str
    """What `prepare` made, or the folder of pictures."""
    batch: int = 256
    side: int = 224
    """Height and width of the pictures in a batch, pixels."""
    workers: int = 2
    """Processes or threads that work, the loop that takes the batches not among them."""
    crop: Literal["random", "center"] = "random"
    """A random resized crop with a random flip, or the middle square as it is."""
    resize: Resize = "bilinear"
    """For those that leave a choice."""
    sample: str | None = None
    """Where the first pictures are kept to be looked at, `.npy`."""
