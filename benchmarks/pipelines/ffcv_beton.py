"""FFCV: a beton of JPEGs that it encoded anew, or of pixels; its own decoder and threads.

It can't keep a picture's JPEG, and resizes with OpenCV's INTER_AREA only.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import (
    CenterCropRGBImageDecoder,
    IntDecoder,
    RandomResizedCropRGBImageDecoder,
)
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip, ToTensor
from ffcv.writer import DatasetWriter
from numpy.typing import NDArray
from PIL import Image

from benchmarks.pipelines.endless import endless
from benchmarks.pipelines.folder import list_folder
from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import RATIO, SCALE, Batches, Task

_LONG_SIDE, _QUALITY = 500, 90
"""As in FFCV's recipe for ImageNet."""


class Folder:
    """Pixels and labels of a folder's pictures.

    Args:
        root: The folder.
        side: Height and width of the middle square that they become; None for them as they are.
    """

    def __init__(self, root: str, side: int | None) -> None:
        self._files = list_folder(root)
        self._side = side

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[NDArray[np.uint8], int]:
        path, label = self._files[index]
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGB"))
        if self._side is not None:
            height, width = pixels.shape[:2]
            short = min(height, width)
            top, left = (height - short) // 2, (width - short) // 2
            square = pixels[top : top + short, left : left + short]
            size = (self._side, self._side)
            pixels = cv2.resize(square, size, interpolation=cv2.INTER_AREA).astype(np.uint8)
        return pixels, label


def prepare(folder: str, output: str, mode: str, side: str | None = None) -> None:
    """Writes a beton.

    Args:
        folder: Folder of class folders.
        output: The beton.
        mode: `jpg`, or `raw` for pixels.
        side: Height and width of the middle square that pictures become; None for FFCV's longest
            side.
    """
    longest = None if side is not None else _LONG_SIDE
    field = RGBImageField(write_mode=mode, max_resolution=longest, jpeg_quality=_QUALITY)
    writer = DatasetWriter(output, {"image": field, "label": IntField()})
    writer.from_indexed_dataset(Folder(folder, None if side is None else int(side)))


def batches(task: Task) -> Batches:
    """Reads the beton, which the page cache holds."""
    return endless(
        Loader(
            task.source,
            batch_size=task.batch,
            num_workers=task.workers,
            order=OrderOption.RANDOM,
            os_cache=True,
            drop_last=True,
            pipelines={"image": _steps(task), "label": [IntDecoder(), ToTensor()]},
        )
    )


def _steps(task: Task) -> Sequence[object]:
    size = (task.side, task.side)
    if task.crop == "center":
        # Asks for a share of the shorter side, which for pixels of 256 is 224 of them.
        return [CenterCropRGBImageDecoder(size, ratio=task.side / 256), ToTensor()]
    return [
        RandomResizedCropRGBImageDecoder(size, scale=SCALE, ratio=RATIO),
        RandomHorizontalFlip(),
        ToTensor(),
    ]


if __name__ == "__main__":
    serve(batches, prepare, ("ffcv", "numba", "opencv-python", "torch"))
