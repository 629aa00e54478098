"""index.arrow: one row a sample, memory-mapped.

An Arrow IPC file (https://arrow.apache.org/docs/format/Columnar.html) with a single record batch,
no compression and no nulls in the columns below, so that every column is one contiguous range of
the file and is used where it lies. A million rows cost no Python object until they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readers.errors import CorruptDatasetError
from readers.sample import JsonValue

CHECKSUM_BYTES = 16

COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("key", pa.large_string()),
    ("path", pa.large_binary()),
    ("label", pa.int32()),
    ("shard", pa.int32()),
    ("offset", pa.int64()),
    ("length", pa.int64()),
    ("height", pa.int32()),
    ("width", pa.int32()),
    ("orientation", pa.int8()),
    ("type", pa.int8()),
    ("checksum", pa.binary(CHECKSUM_BYTES)),
    ("extra", pa.large_string()),
)
"""Name and type of each column.

`path` is the source path in bytes, as the file system had it. `label` is -1 without labels.
`offset` and `length` locate the image in the first file of shard number `shard`. `height` and
`width` are in pixels as stored, 0 where unknown; `orientation` is the EXIF orientation of the
stored bytes. `type` is a position in `readers.header.IMAGE_TYPES`. `checksum` is that of the image,
see `readers.checksum`. `extra` is a JSON object, or empty where the dataset has no extra fields.
"""

SCHEMA = pa.schema([pa.field(name, kind, nullable=False) for name, kind in COLUMNS])


Number = TypeVar("Number", bound=np.generic)


class Index:
    """The rows of a dataset.

    Attributes:
        labels: int32, shape (samples,).
        shards: int32, shape (samples,).
        offsets: int64, shape (samples,), bytes.
        lengths: int64, shape (samples,), bytes.
        heights: int32, shape (samples,), pixels.
        widths: int32, shape (samples,), pixels.
        orientations: int8, shape (samples,).
        types: int8, shape (samples,).
        checksums: uint8, shape (samples, 16).
    """

    def __init__(self, content: memoryview, samples: int, path: Path) -> None:
        """Takes the columns out of a mapped file.

        Args:
            content: The mapped file.
            samples: Number of rows that it must have.
            path: Where it lies, for the messages.

        Raises:
            CorruptDatasetError: It isn't such an index.
        """
        self._path = path
        try:
            reader = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(content)))
            if not reader.schema.equals(SCHEMA):
                raise self._corrupt("its columns are not those of an index")
            if reader.num_record_batches != 1:
                raise self._corrupt(f"{reader.num_record_batches} record batches, not 1")
            batch = reader.get_batch(0)
        except (pa.ArrowException, OSError) as error:
            raise self._corrupt(str(error)) from error
        if batch.num_rows != samples:
            raise self._corrupt(f"{batch.num_rows} rows, not {samples}")
        self._batch = batch
        self.labels = self._numbers("label", np.int32)
        self.shards = self._numbers("shard", np.int32)
        self.offsets = self._numbers("offset", np.int64)
        self.lengths = self._numbers("length", np.int64)
        self.heights = self._numbers("height", np.int32)
        self.widths = self._numbers("width", np.int32)
        self.orientations = self._numbers("orientation", np.int8)
        self.types = self._numbers("type", np.int8)
        self.checksums = self._numbers("checksum", np.uint8, CHECKSUM_BYTES).reshape(
            samples, CHECKSUM_BYTES
        )
        self._keys = self._texts("key")
        self._paths = self._texts("path")
        self._extras = self._texts("extra")

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def places(self, rows: list[int]) -> tuple[list[int], list[int], list[int], list[int]]:
        """Gives shard, offset, length and label of some samples."""
        if len(rows) == 1:
            row = rows[0]
            return (
                [self.shards.item(row)],
                [self.offsets.item(row)],
                [self.lengths.item(row)],
                [self.labels.item(row)],
            )
        return (
            self.shards[rows].tolist(),
            self.offsets[rows].tolist(),
            self.lengths[rows].tolist(),
            self.labels[rows].tolist(),
        )

    def column(self, name: str) -> pa.Array:
        """Gives a column of `COLUMNS` as Arrow holds it."""
        return self._batch.column(name)

    def key(self, row: int) -> str:
        """Gives the key of a sample."""
        return self._text(self._keys, row, "strict")

    def path(self, row: int) -> str:
        """Gives the source path of a sample, see `Sample.path`."""
        return self._text(self._paths, row, "surrogateescape")

    def extra(self, row: int) -> Mapping[str, JsonValue]:
        """Gives the extra fields of a sample."""
        text = self._text(self._extras, row, "strict")
        if not text:
            return {}
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._corrupt(f"extra fields of row {row} are no JSON: {error}") from error
        if not isinstance(fields, dict):
            raise self._corrupt(f"extra fields of row {row} are no JSON object")
        return fields

    def _numbers(self, name: str, kind: type[Number], width: int = 1) -> NDArray[Number]:
        column = self._batch.column(name)
        data = column.buffers()[1]
        if len(self) == 0:
            return np.empty(0, kind)
        try:
            return np.frombuffer(data, kind, len(self) * width)
        except (TypeError, ValueError) as error:
            raise self._corrupt(f"column {name}: {error}") from error

    def _texts(self, name: str) -> tuple[NDArray[np.int64], memoryview]:
        if len(self) == 0:
            return np.zeros(1, np.int64), memoryview(b"")
        _, offsets, data = self._batch.column(name).buffers()
        try:
            starts = np.frombuffer(offsets, np.int64, len(self) + 1)
        except (TypeError, ValueError) as error:
            raise self._corrupt(f"column {name}: {error}") from error
        return starts, memoryview(b"" if data is None else data)

    def _text(self, column: tuple[NDArray[np.int64], memoryview], row: int, errors: str) -> str:
        starts, data = column
        start, end = starts.item(row), starts.item(row + 1)
        if not 0 <= start <= end <= len(data):
            raise self._corrupt(f"text of row {row} lies outside of its column")
        try:
            return str(data[start:end], "utf-8", errors)
        except UnicodeDecodeError as error:
            raise self._corrupt(f"text of row {row}: {error}") from error

    def _corrupt(self, reason: str) -> CorruptDatasetError:
        return CorruptDatasetError(
            f"{self._path} is damaged: {reason}; restore it or pack the dataset again",
            path=str(self._path),
        )
