"""Parquet and Arrow files that other tools wrote, images among their columns, read in place."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from packer.sources.contained import Found
from packer.sources.findings import Findings
from packer.sources.table_columns import TableColumns, columns_of_table
from readers.errors import CorruptDatasetError, SourceError

_ROWS_AT_ONCE = 1024
_HELD = 2
"""Parts of files whose images are held in memory: readers go through them in order."""
_MAX_PART = 4 << 30
"""Bytes of a row group, unpacked, that are read for the sake of one image."""
_ARROW_FILE = b"ARROW1"
_DAMAGE = (pa.ArrowException, UnicodeDecodeError)


class TableFile(Protocol):
    """A file of tables, opened."""

    schema: pa.Schema

    @abstractmethod
    def rows(self, columns: TableColumns) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Goes through all but the images: the number of a part, and some of its rows."""

    @abstractmethod
    def images(self, part: int, columns: TableColumns) -> pa.ChunkedArray:
        """Gives the images of a part."""


def parquet_container() -> TableContainer:
    """Makes the container of Parquet files."""
    return TableContainer("parquet", "row group", ParquetTable)


def arrow_container() -> TableContainer:
    """Makes the container of Arrow files and streams."""
    return TableContainer("arrow", "record batch", ArrowTable)


class TableContainer:
    """A `packer.sources.contained.Container` of files of tables."""

    def __init__(self, kind: str, unit: str, opener: Callable[[Path], TableFile]) -> None:
        """Takes what tells the kinds apart.

        Args:
            kind: Name of the kind.
            unit: What a part of a file is called.
            opener: Opens a file; raises what Arrow does for a damaged one.
        """
        self.kind = kind
        self.unit = unit
        self._opener = opener
        self._names: tuple[str, ...] | None = None
        self._columns: dict[Path, TableColumns] = {}
        self._held: OrderedDict[tuple[Path, int], pa.ChunkedArray] = OrderedDict()
        self._lock = threading.Lock()

    def scan(self, file: Path, findings: Findings) -> Iterator[Found]:
        """Goes through the rows of a file, all columns but the images."""
        with _told(file):
            opened = self._opener(file)
            columns = columns_of_table(opened.schema, file, findings)
        self._take_names(columns.names, file)
        self._columns[file] = columns
        number, place = -1, 0
        rows = opened.rows(columns)
        while True:
            with _told(file):
                part, batch = next(rows, (-1, None))
                found = [] if batch is None else batch.to_pylist()
            if batch is None:
                return
            place = place if part == number else 0
            number = part
            for row in found:
                yield columns.found(row, (part, place))
                place += 1

    def read(self, file: Path, place: tuple[int, int]) -> bytes:
        """Reads an image, and holds those around it for the next ones."""
        part, row = place
        with self._lock:
            images = self._held.get((file, part))
            if images is None:
                images = self._read_part(file, part)
                self._held[file, part] = images
                if len(self._held) > _HELD:
                    self._held.popitem(last=False)
            self._held.move_to_end((file, part))
        image = images[row] if row < len(images) else pa.scalar(None)
        if image.is_valid and pa.types.is_struct(image.type):
            image = image["bytes"]
        if not image.is_valid:
            raise CorruptDatasetError("there are no bytes of an image in its row")
        return bytes(image.as_buffer())

    def class_names(self) -> Sequence[str]:
        """Gives the names that the files say; none if they say none."""
        return self._names or ()

    def _read_part(self, file: Path, part: int) -> pa.ChunkedArray:
        try:
            return self._opener(file).images(part, self._columns[file])
        except _DAMAGE as error:
            raise CorruptDatasetError(f"{self.unit} {part} is damaged: {error}") from error

    def _take_names(self, names: tuple[str, ...], file: Path) -> None:
        if self._names not in {None, names}:
            raise SourceError(
                f"{file}: its classes aren't those of the files before it; pack them one by one",
                path=str(file),
            )
        self._names = names


@contextmanager
def _told(file: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise SourceError(f"{file}: damaged: {error}", path=str(file)) from error
    except OSError as error:
        # Arrow says with it, without a number, that the bytes are wrong.
        if error.errno is not None:
            raise
        raise SourceError(f"{file}: damaged: {error}", path=str(file)) from error


class ParquetTable:
    """A Parquet file; its parts are row groups."""

    def __init__(self, file: Path) -> None:
        self._path = file
        self._file = pq.ParquetFile(file, memory_map=True)
        self.schema = self._file.schema_arrow

    def rows(self, columns: TableColumns) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Goes through all but the images."""
        for group in range(self._file.num_row_groups):
            if not columns.others:
                count = self._file.metadata.row_group(group).num_rows
                yield from ((group, part) for part in _empty_rows(count))
                continue
            for batch in self._file.iter_batches(
                _ROWS_AT_ONCE, row_groups=[group], columns=columns.others
            ):
                yield group, batch

    def images(self, part: int, columns: TableColumns) -> pa.ChunkedArray:
        """Reads the images of a row group."""
        # The metadata of a single column would end the process where they are damaged.
        size = self._file.metadata.row_group(part).total_byte_size
        if not 0 <= size <= _MAX_PART:
            raise SourceError(
                f"{self._path}: row group {part} takes {size} bytes, and {_MAX_PART} at the most "
                "are read for an image: write the file anew with smaller row groups",
                path=str(self._path),
            )
        return self._file.read_row_group(part, columns=[columns.leaf]).column(0)


class ArrowTable:
    """An Arrow IPC file or stream; its parts are record batches."""

    def __init__(self, file: Path) -> None:
        self._source = pa.memory_map(str(file))
        self._file: pa.RecordBatchFileReader | None = None
        self._messages: list[int] = []
        if self._source.read(len(_ARROW_FILE)) == _ARROW_FILE:
            self._file = pa.ipc.open_file(self._source)
            self.schema = self._file.schema
        else:
            self._source.seek(0)
            self.schema = self._find_batches(file)

    def rows(self, columns: TableColumns) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Goes through all but the images."""
        parts = len(self._messages) if self._file is None else self._file.num_record_batches
        for number in range(parts):
            batch = self._batch(number)
            names = [name for name in columns.others if name in batch.schema.names]
            arrays = [batch.column(name) for name in names]
            if columns.nested and (path := _inner_path(batch.column(columns.image))) is not None:
                names.append(columns.image)
                arrays.append(path)
            rows = pa.RecordBatch.from_arrays(arrays, names=names)
            if not rows.num_columns:
                yield from ((number, part) for part in _empty_rows(batch.num_rows))
                continue
            for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                yield number, rows.slice(start, _ROWS_AT_ONCE)

    def images(self, part: int, columns: TableColumns) -> pa.ChunkedArray:
        """Gives the images of a record batch."""
        return pa.chunked_array([self._batch(part).column(columns.image)])

    def _find_batches(self, file: Path) -> pa.Schema:
        """Walks through a stream once, to know where its batches are."""
        stream = pa.ipc.open_stream(self._source)
        if any(pa.types.is_dictionary(kind) for kind in stream.schema.types):
            raise SourceError(
                f"{file}: a stream of Arrow with dictionaries; write it as an Arrow file or as "
                "Parquet",
                path=str(file),
            )
        start = self._source.tell()
        for _ in stream:
            self._messages.append(start)
            start = self._source.tell()
        return stream.schema

    def _batch(self, number: int) -> pa.RecordBatch:
        if self._file is not None:
            batch = self._file.get_batch(number)
        else:
            self._source.seek(self._messages[number])
            batch = pa.ipc.read_record_batch(pa.ipc.read_message(self._source), self.schema)
        batch.validate(full=True)  # offsets of strangers would be followed anywhere otherwise
        return batch


def _inner_path(images: pa.StructArray) -> pa.StructArray | None:
    """Gives the structs with their path alone; None where they have none."""
    if images.type.get_field_index("path") < 0:
        return None
    return pa.StructArray.from_arrays([images.field("path")], ["path"], mask=images.is_null())


def _empty_rows(count: int) -> Iterator[pa.RecordBatch]:
    """Gives rows without columns, some at a time."""
    for start in range(0, count, _ROWS_AT_ONCE):
        size = min(_ROWS_AT_ONCE, count - start)
        yield pa.record_batch([pa.nulls(size)], ["nothing"])
