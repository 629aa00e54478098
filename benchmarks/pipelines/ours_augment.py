"""Our transforms."""

from __future__ import annotations

from benchmarks.pipelines.task import RATIO, SCALE, Task
from readers.transforms import CenterCrop, Compose, RandomHorizontalFlip, RandomResizedCrop


def augmentation(task: Task, *, reducing_gap: float | None = 3.0) -> Compose:
    """Makes the crop that was asked for; see `readers.transforms.Compose` for `reducing_gap`."""
    if task.crop == "center":
        return Compose([CenterCrop(task.side)])
    crop = RandomResizedCrop(task.side, SCALE, RATIO, task.resize)
    return Compose([crop, RandomHorizontalFlip()], reducing_gap=reducing_gap)
