"""torchvision's transforms, as its manual says they are fast: v2, of `uint8` tensors, antialiased.

See "Performance considerations" of https://pytorch.org/vision/stable/transforms.html.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import torch
from PIL import Image

from benchmarks.pipelines.task import RATIO, SCALE, Task
from benchmarks.pipelines.torchvision_import import v2

Augment = Callable[[Any], torch.Tensor]


def augmentation(task: Task) -> Augment:
    """Makes a function of a Pillow image in RGB: `uint8`, shape (3, side, side)."""
    augment: Augment = v2.Compose(
        [
            v2.PILToTensor(),
            v2.RandomResizedCrop(task.side, scale=SCALE, ratio=RATIO, antialias=True),
            v2.RandomHorizontalFlip(),
        ]
    )
    return augment


class AugmentBytes:
    """Makes of a file's bytes what `augmentation` makes of an image; can be pickled."""

    def __init__(self, task: Task) -> None:
        self._augment = augmentation(task)

    def __call__(self, data: bytes) -> torch.Tensor:
        """Gives `uint8`, shape (3, side, side)."""
        with Image.open(BytesIO(data)) as image:
            return self._augment(image.convert("RGB"))


def batch_of(
    pictures: Sequence[torch.Tensor], labels: Sequence[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Stacks pictures, in memory that is shared where a worker does it."""
    return torch.utils.data.default_collate(list(pictures)), torch.tensor(labels)
