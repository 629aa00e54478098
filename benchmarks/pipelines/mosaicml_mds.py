"""MosaicML streaming: MDS shards on local storage, in PyTorch's DataLoader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import benchmarks.pipelines.torchvision_import  # noqa: F401 - before streaming, which imports it

# isort: split
from streaming import MDSWriter, StreamingDataset
from torch.utils.data import DataLoader

from benchmarks.pipelines.endless import endless
from benchmarks.pipelines.folder import list_folder
from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import Batches, Task
from benchmarks.pipelines.torchvision_augment import AugmentBytes, batch_of


def prepare(folder: str, output: str) -> None:
    """Writes the shards; the files' bytes go into them as they are."""
    with MDSWriter(out=output, columns={"image": "bytes", "label": "int"}) as writer:
        for path, label in list_folder(folder):
            writer.write({"image": Path(path).read_bytes(), "label": label})


def batches(task: Task) -> Batches:
    """Reads the shards; pictures are decoded by the workers, when they make a batch."""
    augment = AugmentBytes(task)

    def collate(samples: list[dict[str, Any]]) -> tuple[object, object]:
        pictures = [augment(sample["image"]) for sample in samples]
        return batch_of(pictures, [sample["label"] for sample in samples])

    return endless(
        DataLoader(
            StreamingDataset(local=task.source, shuffle=True, batch_size=task.batch),
            batch_size=task.batch,
            num_workers=task.workers,
            drop_last=True,
            persistent_workers=True,
            collate_fn=collate,
        )
    )


if __name__ == "__main__":
    serve(batches, prepare, ("mosaicml-streaming", "torchvision", "torch", "pillow"))
