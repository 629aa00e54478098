"""What reading costs at least: the same extents copied out of the page cache by `preadv`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from readers.dataset import Dataset


class Extents:
    """Where the images of a dataset lie, with the files held open."""

    def __init__(self, dataset: Dataset, batch: int) -> None:
        """Opens the files.

        Args:
            dataset: Whose images are copied.
            batch: Largest number of images that are copied at once.
        """
        index = dataset.index
        self._descriptors = [
            os.open(dataset.root / shard.name, os.O_RDONLY) for shard in dataset.manifest.shards
        ]
        shards, offsets, lengths = (
            column.tolist() for column in (index.shards, index.offsets, index.lengths)
        )
        files = [self._descriptors[shard] for shard in shards]
        self._extents: list[tuple[int, int, int]] = list(zip(files, offsets, lengths, strict=True))
        self._buffer = np.zeros(batch * max(lengths), np.uint8)

    def into_new_memory(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Copies the images of some rows, one behind the other, into memory of their own."""
        extents = [self._extents[row] for row in rows.tolist()]
        memory = np.empty(sum(length for _, _, length in extents), np.uint8)
        _copy(extents, memory.data)
        return memory

    def into_one_buffer(self, rows: NDArray[np.int64]) -> None:
        """Copies the images of some rows, one behind the other, over those of earlier calls."""
        _copy([self._extents[row] for row in rows.tolist()], self._buffer.data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)


def _copy(extents: Sequence[tuple[int, int, int]], memory: memoryview) -> None:
    end = 0
    for file, offset, length in extents:
        os.preadv(file, [memory[end : end + length]], offset)
        end += length
