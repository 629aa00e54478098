"""Writes Parquet shards: pages as they fill, so that images pass through once and uncopied."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from packer.columns import check_size
from packer.protocols import Contents, Record
from packer.shard_file import ShardFile
from packer.table_rows import Cell, Row, TableSchema, by_column
from readers.checksum import Buffer
from readers.errors import CorruptDatasetError
from readers.layout import parquet as layout
from readers.manifest import File

_NUMBERS = {"float64": "<f8", "int64": "<i8"}


class ParquetShardWriter:
    """A `packer.protocols.ShardWriter` for `readers.layout.parquet`."""

    def __init__(self, directory: Path, name: str, contents: Contents, /) -> None:
        self._path = directory / (name + layout.SUFFIX)
        self._file = ShardFile(self._path)
        self._schema = TableSchema(contents)
        self._image, *self._others = layout.leaves(self._schema.columns)
        self._groups: list[layout.Group] = []
        self._rows: list[Row] = []
        self._group_bytes = 0
        self._pages: list[layout.Page] = []
        self._images: list[Buffer] = []
        self._page_bytes = 0
        self._other_bytes = 0
        self._samples = 0
        self._offsets = array("q")
        self._file.append(layout.MAGIC)

    @property
    def size(self) -> int:
        """Bytes of images and what goes with each of them so far."""
        return self._file.size + self._page_bytes + self._other_bytes

    def write(self, record: Record, /) -> None:
        """Adds a record."""
        image = record.image
        check_size(record, layout.MAX_IMAGE)
        row = self._schema.row(record)
        stored = layout.LENGTH_BYTES + len(image)
        full = self._group_bytes + row.nbytes > layout.GROUP_BYTES
        if self._rows and (full or len(self._rows) == layout.GROUP_ROWS):
            self._end_group()
        if self._images and self._page_bytes + stored > layout.PAGE_BYTES:
            self._end_image_page()
        self._rows.append(row)
        self._images.append(image)
        self._group_bytes += row.nbytes
        self._page_bytes += stored
        self._other_bytes += row.nbytes - len(image)
        self._samples += 1

    def finish(self) -> tuple[tuple[File, ...], NDArray[np.int64]]:
        """Completes the shard and flushes it to the medium."""
        self._end_group()
        indexes = [[self._add_index(chunk) for chunk in group.chunks] for group in self._groups]
        schema = self._schema
        self._file.append(layout.footer(schema.columns, schema.description, self._groups, indexes))
        file = self._file.finish()
        self._check_with_parquet()
        return (file,), np.array(self._offsets, np.int64)

    def abandon(self) -> None:
        """Gives files and threads back; what was written is incomplete and stays so."""
        self._file.abandon()

    def _end_image_page(self) -> None:
        images = self._images
        first = len(self._rows) - len(images)
        start = self._file.size
        self._file.append(layout.page_head(self._image, len(images), self._page_bytes))
        for image in images:
            self._file.append(layout.length_prefix(len(image)))
            self._offsets.append(self._file.size)
            self._file.append(image)
        self._pages.append(layout.Page(start, self._file.size - start, first))
        self._images, self._page_bytes = [], 0

    def _end_group(self) -> None:
        self._end_image_page()
        rows = self._rows
        chunks = [layout.Chunk(tuple(self._pages))]
        paths: list[Cell] = [row.path for row in rows]
        columns = [paths, *by_column(rows, len(self._schema.columns))]
        for leaf, cells in zip(self._others, columns, strict=True):
            start = self._file.size
            present = [cell is not None for cell in cells]
            values = _values(leaf.type, [cell for cell in cells if cell is not None])
            rows_or_some = len(cells) if all(present) else present
            self._file.append(layout.page_head(leaf, rows_or_some, len(values)))
            self._file.append(values)
            page = layout.Page(start, self._file.size - start, 0)
            chunks.append(layout.Chunk((page,)))
        self._groups.append(layout.Group(len(rows), tuple(chunks)))
        self._rows, self._pages = [], []
        self._group_bytes, self._other_bytes = 0, 0

    def _add_index(self, chunk: layout.Chunk) -> tuple[int, int]:
        rendered = layout.offset_index(chunk)
        start = self._file.size
        self._file.append(rendered)
        return start, len(rendered)

    def _check_with_parquet(self) -> None:
        """Lets Parquet itself open the file and read the keys of its last row group."""
        with pq.ParquetFile(self._path) as file:
            found = file.metadata.num_rows
            last = file.read_row_group(file.num_row_groups - 1, columns=["key"])
        if found != self._samples or len(last) != self._groups[-1].rows:
            raise CorruptDatasetError(
                f"{self._path}: Parquet finds {found} of {self._samples} samples",
                path=str(self._path),
            )


def _values(kind: str, cells: Sequence[Cell]) -> bytes:
    if kind == "string":
        texts = [cell for cell in cells if isinstance(cell, bytes)]
        return b"".join(layout.length_prefix(len(text)) + text for text in texts)
    if kind == "bool":
        return np.packbits(np.array(cells, np.bool_), bitorder="little").tobytes()
    return np.array(cells, _NUMBERS[kind]).tobytes()
