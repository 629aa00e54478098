"""Our readers in the workers of PyTorch's DataLoader."""

from __future__ import annotations

from torch.utils.data import DataLoader

from benchmarks.pipelines.endless import endless
from benchmarks.pipelines.ours_augment import augmentation
from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import Batches, Task
from readers import open_dataset
from readers.torch import MapDataset


def batches(task: Task) -> Batches:
    """Reads the dataset."""
    return endless(
        DataLoader(
            MapDataset(open_dataset(task.source, copy=False), augmentation(task)),
            batch_size=task.batch,
            shuffle=True,
            num_workers=task.workers,
            drop_last=True,
            persistent_workers=True,
        )
    )


if __name__ == "__main__":
    serve(batches, libraries=("dataset-packer", "simplejpeg", "pillow", "torch"))
