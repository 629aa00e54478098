"""Writes Arrow shards: the metadata of a record batch, then its images as they are, uncopied."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from packer.columns import check_size
from packer.protocols import Contents, Record
from packer.shard_file import ShardFile
from packer.table_rows import Cell, Row, TableSchema, by_column
from readers.checksum import Buffer
from readers.errors import CorruptDatasetError
from readers.layout import arrow as layout
from readers.manifest import File

_NUMBERS = {"float64": "<f8", "int64": "<i8"}


class ArrowShardWriter:
    """A `packer.protocols.ShardWriter` for `readers.layout.arrow`."""

    def __init__(self, directory: Path, name: str, contents: Contents, /) -> None:
        self._path = directory / (name + layout.SUFFIX)
        self._file = ShardFile(self._path)
        self._columns = TableSchema(contents)
        self._schema = layout.schema(self._columns.columns, self._columns.description)
        self._blocks: list[layout.Block] = []
        self._rows: list[Row] = []
        self._images: list[Buffer] = []
        self._waiting = 0
        self._offsets = array("q")
        self._file.append(layout.HEAD)
        self._file.append(layout.schema_message(self._schema))

    @property
    def size(self) -> int:
        """Bytes of images and what goes with each of them so far."""
        return self._file.size + self._waiting

    def write(self, record: Record, /) -> None:
        """Adds a record."""
        check_size(record, layout.MAX_IMAGE)
        row = self._columns.row(record)
        full = self._waiting + row.nbytes > layout.BATCH_BYTES
        if self._rows and (full or len(self._rows) == layout.BATCH_ROWS):
            self._end_batch()
        self._rows.append(row)
        self._images.append(record.image)
        self._waiting += row.nbytes

    def finish(self) -> tuple[tuple[File, ...], NDArray[np.int64]]:
        """Completes the shard and flushes it to the medium."""
        self._end_batch()
        self._file.append(layout.footer(self._schema, self._blocks))
        file = self._file.finish()
        self._check_with_arrow()
        return (file,), np.array(self._offsets, np.int64)

    def abandon(self) -> None:
        """Gives files and threads back; what was written is incomplete and stays so."""
        self._file.abandon()

    def _end_batch(self) -> None:
        rows, images = self._rows, self._images
        whole = layout.Node(len(rows), 0)
        lengths = np.fromiter(map(len, images), np.int64, len(images))
        paths = _texts([row.path for row in rows])
        nodes = [whole, whole, whole]
        after: list[Buffer] = [b"", *paths]
        for column, cells in zip(
            self._columns.columns, by_column(rows, len(self._columns.columns)), strict=True
        ):
            nulls = cells.count(None)
            nodes.append(layout.Node(len(rows), nulls))
            after.append(_bits([cell is not None for cell in cells]) if nulls else b"")
            after += _values(column.type, cells)
        ends = _ends(lengths)
        sizes = [0, 0, len(ends), int(lengths.sum()), *map(len, after)]
        head, body = layout.batch_message(nodes, sizes)
        self._blocks.append(layout.Block(self._file.size, len(head), body))
        self._file.append(head)
        self._append_padded(ends)
        self._offsets.extend((self._file.size + np.cumsum(lengths) - lengths).tolist())
        for image in images:
            self._file.append(image)
        self._file.append(layout.padding(sizes[3]))
        for buffer in after:
            self._append_padded(buffer)
        self._rows, self._images, self._waiting = [], [], 0

    def _append_padded(self, buffer: Buffer) -> None:
        self._file.append(buffer)
        self._file.append(layout.padding(len(buffer)))

    def _check_with_arrow(self) -> None:
        """Lets Arrow itself open the file and look at its ends."""
        with pa.memory_map(str(self._path)) as mapped, pa.ipc.open_file(mapped) as file:
            batches = file.num_record_batches
            last = file.get_batch(batches - 1)
            last.validate()
            if batches != len(self._blocks) or len(last.schema) != 1 + len(self._columns.columns):
                raise CorruptDatasetError(
                    f"{self._path}: Arrow finds {batches} of {len(self._blocks)} record batches",
                    path=str(self._path),
                )


def _values(kind: str, cells: Sequence[Cell]) -> list[bytes]:
    """Renders a column: its values, or offsets and data."""
    if kind == "string":
        return _texts([cell if isinstance(cell, bytes) else b"" for cell in cells])
    if kind == "bool":
        return [_bits([cell is True for cell in cells])]
    return [np.array([cell or 0 for cell in cells], _NUMBERS[kind]).tobytes()]


def _texts(texts: Sequence[bytes]) -> list[bytes]:
    return [_ends(np.fromiter(map(len, texts), np.int64, len(texts))), b"".join(texts)]


def _ends(lengths: NDArray[np.int64]) -> bytes:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))).astype("<i4").tobytes()


def _bits(flags: Sequence[bool]) -> bytes:
    return np.packbits(np.array(flags, np.bool_), bitorder="little").tobytes()
