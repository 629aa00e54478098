"""The floor under every cache of pixels: as many bytes as a batch has, copied in blocks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import numpy as np

from benchmarks.pipelines.serving import serve
from benchmarks.pipelines.task import Batches, Task

_AHEAD = 2


def batches(task: Task) -> Batches:
    """Copies from the largest file of a dataset, from random places, into new memory."""
    largest = max(Path(task.source).rglob("*"), key=lambda path: path.stat().st_size)
    source = np.memmap(largest, np.uint8, "r")
    block = task.side * task.side * 3
    made: Queue[tuple[object, object]] = Queue(_AHEAD * task.workers)

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        while True:
            batch = np.empty((task.batch, task.side, task.side, 3), np.uint8)
            rows = batch.reshape(task.batch, block)
            for row, start in zip(
                rows, random.integers(0, len(source) - block, task.batch).tolist(), strict=True
            ):
                np.copyto(row, source[start : start + block])
            made.put((batch, np.zeros(task.batch, np.int64)))

    for seed in range(task.workers):
        threading.Thread(target=work, args=(seed,), daemon=True).start()
    return _taken(made)


def _taken(made: Queue[tuple[object, object]]) -> Iterator[tuple[object, object]]:
    while True:
        yield made.get()


if __name__ == "__main__":
    serve(batches)
