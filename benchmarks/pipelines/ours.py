"""Our readers in our loader: any dataset that `packer convert` makes.

Reading copies nothing (`copy=False`), since decoding and cropping write elsewhere anyway.
"""

from __future__ import annotations

import subprocess

from benchmarks.cost import PACKER
from benchmarks.pipelines.endless import endless
from benchmarks.pipelines.ours_augment import augmentation
from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import Batches, Task
from readers import MonitoredLoader, open_dataset


def prepare(folder: str, output: str, *options: str) -> None:
    """Packs a folder, with options of `packer convert`."""
    subprocess.run((*PACKER, "convert", "-q", folder, output, *options), check=True)


def open_loader(task: Task, *, reducing_gap: float | None = 3.0) -> MonitoredLoader:
    """Opens the dataset; see `readers.transforms.Compose` for `reducing_gap`."""
    return MonitoredLoader(
        open_dataset(task.source, copy=False),
        task.batch,
        transform=augmentation(task, reducing_gap=reducing_gap),
        workers=task.workers,
        shuffle=True,
        drop_last=True,
    )


def batches(task: Task) -> Batches:
    """Reads the dataset."""
    return endless(open_loader(task))


if __name__ == "__main__":
    serve(batches, prepare, ("dataset-packer", "simplejpeg", "pillow", "opencv-python-headless"))
