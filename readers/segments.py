"""segments.arrow: where the restart segments of rewritten JPEGs are, memory-mapped.

Beside the index of a dataset that was packed with `--image region`: an Arrow IPC file with a single
record batch, no compression and no nulls, and one column of lists. The list of a sample has the
length in bytes of each restart segment of its JPEG (ITU-T T.81, B.2.1), in order, the marker that
ends it (RSTn) included; the last segment is without the end of the image (EOI). A sample that
wasn't rewritten has an empty list.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readers.errors import CorruptDatasetError

COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("segments", pa.large_list(pa.field("item", pa.uint16(), nullable=False))),
)
SCHEMA = pa.schema([pa.field(name, kind, nullable=False) for name, kind in COLUMNS])


class Segments:
    """The restart segments of a dataset's samples."""

    def __init__(self, content: memoryview, samples: int, path: Path) -> None:
        """Takes the lists out of a mapped file.

        Args:
            content: The mapped file.
            samples: Number of lists that it must have.
            path: Where it lies, for the messages.

        Raises:
            CorruptDatasetError: It isn't such a file.
        """
        self._path = path
        try:
            reader = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(content)))
            batches = [reader.get_batch(0)] * reader.num_record_batches
        except (pa.ArrowException, OSError) as error:
            raise self._corrupt(str(error)) from error
        if not reader.schema.equals(SCHEMA):
            raise self._corrupt("its columns are not those of segments")
        if [batch.num_rows for batch in batches] != [samples]:
            raise self._corrupt(f"{len(batches)} record batches, not 1 of {samples} rows")
        _, starts, _, lengths = batches[0].column(0).buffers()
        try:
            self._starts: NDArray[np.int64] = np.frombuffer(starts, np.int64, samples + 1)
            self._lengths: NDArray[np.uint16] = np.frombuffer(lengths or b"", np.uint16)
        except (TypeError, ValueError) as error:
            raise self._corrupt(str(error)) from error

    def __getitem__(self, row: int) -> NDArray[np.uint16] | None:
        """Gives the lengths of a sample's segments, a view; None if it wasn't rewritten.

        Raises:
            CorruptDatasetError: The list lies outside of the file.
        """
        start, end = self._starts.item(row), self._starts.item(row + 1)
        if start == end:
            return None
        if not 0 <= start < end <= len(self._lengths):
            raise self._corrupt(f"the list of row {row} lies outside of its column")
        return self._lengths[start:end]

    @property
    def rewritten(self) -> int:
        """Number of samples that were rewritten."""
        return int(np.count_nonzero(np.diff(self._starts)))

    def _corrupt(self, reason: str) -> CorruptDatasetError:
        return CorruptDatasetError(
            f"{self._path} is damaged: {reason}; restore it or pack the dataset again",
            path=str(self._path),
        )
