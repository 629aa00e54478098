"""SPDL: a pipeline of threads, with simplejpeg and OpenCV, which let go of the GIL.

Its own decoder, FFmpeg's, is slower than these. See https://facebookresearch.github.io/spdl.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from spdl.pipeline import PipelineBuilder

from benchmarks.pipelines.fast_crop import write_crop
from benchmarks.pipelines.folder import list_folder
from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import Batches, Task

_Picture = tuple[NDArray[np.uint8], int]
_Batch = tuple[NDArray[np.uint8], NDArray[np.int64]]


def _shuffled(files: list[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    while True:
        random.shuffle(files)
        yield from files


def batches(task: Task) -> Batches:
    """Reads the folder."""
    cv2.setNumThreads(1)

    def load(file: tuple[str, int]) -> _Picture:
        path, label = file
        picture = np.empty((task.side, task.side, 3), np.uint8)
        with open(path, "rb") as stream:  # noqa: PTH123 - the fastest way
            write_crop(simplejpeg.decode_jpeg(stream.read()), picture)
        return picture, label

    def stack(samples: list[_Picture]) -> _Batch:
        pictures, labels = zip(*samples, strict=True)
        return np.stack(pictures), np.array(labels)

    pipeline = (
        PipelineBuilder()
        .add_source(_shuffled(list_folder(task.source)))
        .pipe(load, concurrency=task.workers)
        .aggregate(task.batch, drop_last=True)
        .pipe(stack)
        .add_sink(2)
        .build(num_threads=task.workers)
    )
    with pipeline.auto_stop():
        yield from pipeline.get_iterator()


if __name__ == "__main__":
    serve(batches, libraries=("spdl", "simplejpeg", "opencv-python-headless"))
