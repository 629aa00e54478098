"""LitData: chunks that `optimize` makes, streamed from local storage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import litdata

from benchmarks.pipelines.folder import list_folder
from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import Batches, Task
from benchmarks.pipelines.torchvision_augment import AugmentBytes, batch_of


def prepare(folder: str, output: str) -> None:
    """Makes the chunks.

    `optimize` removes the folders `data` and `chunks` of the folder for temporary files when it
    starts, so it gets one of its own.
    """
    scratch = f"{output}.scratch"
    for name in ("DATA_OPTIMIZER_CACHE_FOLDER", "DATA_OPTIMIZER_DATA_CACHE_FOLDER"):
        os.environ[name] = f"{scratch}/{name.lower()}"
    os.environ["TMPDIR"] = scratch
    Path(scratch).mkdir()
    litdata.optimize(
        fn=read,
        inputs=list_folder(folder),
        output_dir=output,
        chunk_bytes="64MB",
        num_workers=len(os.sched_getaffinity(0)),
    )


def read(file: tuple[str, int]) -> dict[str, Any]:
    """Makes a sample: the file's bytes as they are, and the label."""
    path, label = file
    return {"image": Path(path).read_bytes(), "label": label}


def augmented(augment: AugmentBytes, sample: dict[str, Any]) -> tuple[Any, int]:
    """Makes what goes into a batch."""
    return augment(sample["image"]), sample["label"]


def collate(samples: list[tuple[Any, int]]) -> tuple[object, object]:
    """Makes a batch."""
    pictures, labels = zip(*samples, strict=True)
    return batch_of(pictures, labels)


def batches(task: Task) -> Batches:
    """Reads the chunks."""
    dataset = litdata.StreamingDataset(
        task.source,
        cache_dir=f"{task.source}.read",
        shuffle=True,
        drop_last=True,
        transform=partial(augmented, AugmentBytes(task)),
    )
    loader = litdata.StreamingDataLoader(
        dataset,
        batch_size=task.batch,
        num_workers=task.workers,
        collate_fn=collate,
        persistent_workers=True,
    )
    return _full(loader, task.batch)


def _full(loader: Any, size: int) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - untyped
    """Leaves out the last batch of each worker, which isn't full."""
    while True:
        for images, labels in loader:
            if len(images) == size:
                yield images, labels


if __name__ == "__main__":
    serve(batches, prepare, ("litdata", "torchvision", "torch", "pillow"))
