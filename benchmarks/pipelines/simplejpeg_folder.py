"""Plain files, simplejpeg and OpenCV in the workers of PyTorch's DataLoader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import simplejpeg
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from benchmarks.pipelines.boxes import seed
from benchmarks.pipelines.endless import endless
from benchmarks.pipelines.fast_crop import write_crop
from benchmarks.pipelines.folder import list_folder
from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import Batches, Task


class Folder(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Whole batches of a folder's pictures, by lists of indices."""

    def __init__(self, task: Task) -> None:
        self._files = list_folder(task.source)
        self._side = task.side

    def __len__(self) -> int:
        return len(self._files)

    def __getitems__(self, indices: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        images = torch.empty((len(indices), self._side, self._side, 3), dtype=torch.uint8)
        out: NDArray[np.uint8] = images.numpy()
        for place, index in enumerate(indices):
            with open(self._files[index][0], "rb") as stream:  # noqa: PTH123 - the fastest way
                write_crop(simplejpeg.decode_jpeg(stream.read()), out[place])
        return images, torch.tensor([self._files[index][1] for index in indices])


def _started(worker: int) -> None:
    cv2.setNumThreads(1)
    seed(worker)


def batches(task: Task) -> Batches:
    """Reads the folder."""
    return endless(
        DataLoader(
            Folder(task),
            batch_size=task.batch,
            shuffle=True,
            num_workers=task.workers,
            drop_last=True,
            persistent_workers=True,
            collate_fn=_as_it_is,
            worker_init_fn=_started,
        )
    )


def _as_it_is(batch: Any) -> Any:  # noqa: ANN401 - DataLoader takes it for a list of samples
    return batch


if __name__ == "__main__":
    serve(batches, libraries=("simplejpeg", "opencv-python-headless", "torch"))
