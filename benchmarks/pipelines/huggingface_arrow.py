"""Hugging Face datasets: an Arrow dataset on disk, a transform on access, PyTorch's DataLoader."""

from __future__ import annotations

from typing import Any

from datasets import load_dataset, load_from_disk
from torch.utils.data import DataLoader

from benchmarks.pipelines.endless import endless
from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import Batches, Task
from benchmarks.pipelines.torchvision_augment import augmentation, batch_of


def prepare(folder: str, output: str) -> None:
    """Packs the folder; the files' bytes go into the dataset as they are.

    The files are named, since of a folder alone it takes those only whose names contain `train`,
    if there are any.
    """
    dataset = load_dataset(
        "imagefolder",
        data_files={"train": f"{folder}/*/*"},
        split="train",
        drop_labels=False,
        cache_dir=f"{output}.cache",
    )
    dataset.save_to_disk(output)


def batches(task: Task) -> Batches:
    """Reads the dataset."""
    augment = augmentation(task)

    def transform(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
        rows["image"] = [augment(image.convert("RGB")) for image in rows["image"]]
        return rows

    def collate(rows: list[dict[str, Any]]) -> tuple[object, object]:
        return batch_of([row["image"] for row in rows], [row["label"] for row in rows])

    return endless(
        DataLoader(
            load_from_disk(task.source).with_transform(transform),
            batch_size=task.batch,
            shuffle=True,
            num_workers=task.workers,
            drop_last=True,
            persistent_workers=True,
            collate_fn=collate,
        )
    )


if __name__ == "__main__":
    serve(batches, prepare, ("datasets", "torchvision", "torch", "pillow"))
