"""The restart segments of a shard's samples, spooled while the shard is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readers.segments import SCHEMA

_BATCH_ROWS = 4096
_BATCH_SEGMENTS = 1 << 20
_NONE: NDArray[np.uint16] = np.empty(0, np.uint16)


class SegmentRows:
    """An Arrow IPC stream with the schema of segments.arrow, written sample by sample."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lists: list[NDArray[np.uint16]] = []
        self._held = 0
        self._stream = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_stream(self._stream, SCHEMA)

    def append(self, segments: NDArray[np.uint16] | None) -> None:
        """Adds the segments of a sample, None for one that has none."""
        self._lists.append(_NONE if segments is None else segments)
        self._held += len(self._lists[-1])
        if len(self._lists) == _BATCH_ROWS or self._held > _BATCH_SEGMENTS:
            self._flush()

    def finish(self) -> None:
        """Completes the file and flushes it to the medium."""
        if self._lists:
            self._flush()
        self._writer.close()
        self._stream.close()
        with self._path.open("rb") as stream:
            os.fsync(stream.fileno())

    def abandon(self) -> None:
        """Closes the file, incomplete or not."""
        self._stream.close()

    def _flush(self) -> None:
        offsets = np.zeros(len(self._lists) + 1, np.int64)
        np.cumsum([len(one) for one in self._lists], out=offsets[1:])
        lengths = pa.array(np.concatenate(self._lists), pa.uint16())
        column = pa.LargeListArray.from_arrays(pa.array(offsets), lengths, type=SCHEMA[0].type)
        self._writer.write_batch(pa.record_batch([column], schema=SCHEMA))
        self._lists = []
        self._held = 0


def segment_batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Reads what a `SegmentRows` wrote."""
    with pa.memory_map(str(path)) as file:
        yield from pa.ipc.open_stream(file)
