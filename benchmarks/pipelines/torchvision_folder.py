"""`torchvision.datasets.ImageFolder` in PyTorch's DataLoader."""

from __future__ import annotations

from torch.utils.data import DataLoader

from benchmarks.pipelines.endless import endless
from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import Batches, Task
from benchmarks.pipelines.torchvision_augment import augmentation
from benchmarks.pipelines.torchvision_import import datasets


def batches(task: Task) -> Batches:
    """Reads the folder."""
    return endless(
        DataLoader(
            datasets.ImageFolder(task.source, augmentation(task)),
            batch_size=task.batch,
            shuffle=True,
            num_workers=task.workers,
            drop_last=True,
            persistent_workers=True,
        )
    )


if __name__ == "__main__":
    serve(batches, libraries=("torchvision", "torch", "pillow"))
