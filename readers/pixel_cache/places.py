"""Where the pixels of each sample belong: as `packer convert --format npy` would put them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from readers.errors import CorruptDatasetError
from readers.index import Index
from readers.layout import npy as layout
from readers.rectangle import QUARTER_TURNED, turn_size

_MOST_PIXELS = 1 << 60


class Place(NamedTuple):
    """Where the pixels of one sample lie."""

    shard: int
    offset: int
    """Bytes from the start of the shard's file."""
    height: int
    width: int

    @property
    def length(self) -> int:
        """Bytes of the pixels."""
        return self.height * self.width * 3


class Places:
    """The places of a dataset's samples.

    Args:
        index: The dataset whose images are decoded.
        size: Height and width of all pixels; None for each image's own.
        limit: Bytes that the pixels may take together; samples beyond have no place.
        shard_samples: Samples after which a new shard begins.

    Attributes:
        shape: (height, width, 3) where all pixels are of one size.
        shard_samples: Samples after which a new shard begins.
        samples: How many samples have a place: the first ones.
    """

    def __init__(
        self,
        index: Index,
        size: tuple[int, int] | None,
        *,
        limit: int | None,
        shard_samples: int,
    ) -> None:
        self.shape = None if size is None else (*size, 3)
        self.shard_samples = shard_samples
        self._index = index
        self._ends: NDArray[np.int64] | None = None
        if size is not None:
            self._each = size[0] * size[1] * 3
            fitting = len(index) if limit is None else limit // self._each
        else:
            self._ends = np.zeros(len(index) + 1, np.int64)
            areas = index.heights.astype(np.int64) * index.widths
            if (areas < 0).any() or areas.sum(dtype=float) > _MOST_PIXELS:
                raise CorruptDatasetError(
                    "the sizes of images in the index are impossible: run 'packer verify'"
                )
            np.cumsum(areas * 3, out=self._ends[1:])
            room = self._ends[-1] if limit is None else limit
            fitting = int(np.searchsorted(self._ends, room, "right")) - 1
        self.samples = min(len(index), fitting)

    @property
    def nbytes(self) -> int:
        """Bytes of all pixels that have a place."""
        return self._end(self.samples)

    def __getitem__(self, row: int) -> Place:
        shard = row // self.shard_samples
        offset = layout.HEADER_BYTES + self._end(row) - self._end(shard * self.shard_samples)
        if self.shape is not None:
            return Place(shard, offset, self.shape[0], self.shape[1])
        height, width = self._index.heights.item(row), self._index.widths.item(row)
        return Place(shard, offset, *turn_size(height, width, self._index.orientations.item(row)))

    def shards(self) -> Iterator[range]:
        """Gives the rows of each shard."""
        for start in range(0, self.samples, self.shard_samples):
            yield range(start, min(start + self.shard_samples, self.samples))

    def ends(self, rows: range) -> NDArray[np.int64]:
        """Gives where the pixels of consecutive rows start and end, from the first one's start.

        Returns:
            int64, shape (rows + 1,), bytes.
        """
        if self._ends is None:
            return np.arange(len(rows) + 1, dtype=np.int64) * self._each
        ends: NDArray[np.int64] = self._ends[rows.start : rows.stop + 1]
        return ends - self._end(rows.start)

    def sizes(self, rows: range) -> NDArray[np.int32]:
        """Gives height and width of consecutive rows: int32, shape (rows, 2), pixels."""
        if self.shape is not None:
            return np.full((len(rows), 2), self.shape[:2], np.int32)
        part = slice(rows.start, rows.stop)
        stored = np.stack((self._index.heights[part], self._index.widths[part]), axis=1)
        turned = self._index.orientations[part] >= QUARTER_TURNED
        stored[turned] = stored[turned, ::-1]
        return stored

    def _end(self, row: int) -> int:
        return row * self._each if self._ends is None else self._ends.item(row)
