"""Writes LMDB shards: values as they come, the trees at the end."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from pathlib import Path

import lmdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from packer.protocols import Contents, Record
from packer.shard_file import ShardFile
from packer.spool import Spool
from readers.errors import CorruptDatasetError
from readers.layout import lmdb as layout
from readers.manifest import File

_ROWS_AT_ONCE = 1 << 16


class LmdbShardWriter:
    """A `packer.protocols.ShardWriter` for `readers.layout.lmdb`."""

    def __init__(self, directory: Path, name: str, contents: Contents, /) -> None:
        self._path = directory / (name + layout.SUFFIX)
        self._file = ShardFile(self._path, layout.FIRST_PAGE * layout.PAGE)
        self._keys = Spool(directory)
        fields = {layout.EXTRA: contents.extra, layout.IMAGE: True, layout.LABEL: contents.labelled}
        self._values = {
            field: _Values(self._file, directory) for field, present in fields.items() if present
        }

    @property
    def size(self) -> int:
        """Bytes of images and what goes with each of them so far."""
        return self._file.size + sum(values.inline_size for values in self._values.values())

    def write(self, record: Record, /) -> None:
        """Adds a record."""
        key = layout.environment_key(record.key)
        self._keys.append(key)
        self._values[layout.IMAGE].append(key, record.image)
        if layout.LABEL in self._values:
            label = -1 if record.label is None else record.label
            self._values[layout.LABEL].append(key, str(label).encode())
        if layout.EXTRA in self._values:
            self._values[layout.EXTRA].append(key, json.dumps(dict(record.extra)).encode())

    def finish(self) -> tuple[tuple[File, ...], NDArray[np.int64]]:
        """Completes the shard and flushes it to the medium."""
        self._keys.freeze()
        order = self._key_order()
        databases = {}
        offsets = np.empty(0, np.int64)
        for field, values in self._values.items():
            builder = layout.TreeBuilder(self._next_page(), values.overflow_pages)
            databases[field] = self._append(builder, values.nodes(self._keys, order))
            if field == layout.IMAGE:
                offsets = values.offsets(builder.placed, order)
        names = [layout.database_node(field, databases[field]) for field in databases]
        main = self._append(layout.TreeBuilder(self._next_page()), iter(names))
        file = self._file.finish(layout.meta_pages(main, self._next_page() - 1))
        self._check_with_lmdb(len(order))
        self._close()
        return (file,), offsets

    def abandon(self) -> None:
        """Gives files and threads back; what was written is incomplete and stays so."""
        self._file.abandon()
        self._close()

    def _append(self, builder: layout.TreeBuilder, nodes: Iterator[layout.Node]) -> layout.Database:
        for page in builder.pages(nodes):
            self._file.append(page)
        return builder.database

    def _next_page(self) -> int:
        return self._file.size // layout.PAGE

    def _key_order(self) -> NDArray[np.int64]:
        buffers = [None, pa.py_buffer(self._keys.offsets()), pa.py_buffer(self._keys.data)]
        keys = pa.Array.from_buffers(pa.large_binary(), len(self._keys), buffers)
        order: NDArray[np.uint64] = pc.array_sort_indices(keys).to_numpy()
        return order.astype(np.int64)

    def _check_with_lmdb(self, samples: int) -> None:
        """Lets LMDB itself open the file and find the first and the last key."""
        with lmdb.open(
            str(self._path), subdir=False, readonly=True, lock=False, max_dbs=len(self._values)
        ) as environment:
            for field in self._values:
                database = environment.open_db(field.encode(), create=False)
                with environment.begin(db=database) as transaction:
                    found = transaction.stat(database)["entries"]
                    ends = transaction.cursor()
                    if found != samples or not (ends.first() and ends.last()):
                        raise CorruptDatasetError(
                            f"{self._path}: LMDB finds {found} of {samples} in {field!r}",
                            path=str(self._path),
                        )

    def _close(self) -> None:
        self._keys.close()
        for values in self._values.values():
            values.close()


class _Values:
    """The values of one named database."""

    def __init__(self, file: ShardFile, directory: Path) -> None:
        self._file = file
        self._inline = Spool(directory)
        self._pages = array("q")
        self._sizes = array("q")
        self.overflow_pages = 0

    @property
    def inline_size(self) -> int:
        return self._inline.size

    def append(self, key: bytes, value: bytes | memoryview) -> None:
        size = len(value)
        if layout.is_inline(key, size):
            self._pages.append(-1)
            self._inline.append(bytes(value))
        else:
            page, pages = self._file.size // layout.PAGE, layout.overflow_pages(size)
            self._file.append(layout.overflow_header(page, pages))
            self._file.append(value)
            self._file.append(bytes(pages * layout.PAGE - layout.PAGE_HEADER - size))
            self._pages.append(page)
            self._inline.append(b"")
            self.overflow_pages += pages
        self._sizes.append(size)

    def nodes(self, keys: Spool, order: NDArray[np.int64]) -> Iterator[layout.Node]:
        self._inline.freeze()
        for start in range(0, len(order), _ROWS_AT_ONCE):
            for row in order[start : start + _ROWS_AT_ONCE].tolist():
                page = self._pages[row]
                if page < 0:
                    yield layout.inline_node(keys[row], self._inline[row])
                else:
                    yield layout.overflow_node(keys[row], page, self._sizes[row])

    def offsets(self, placed: array[int], order: NDArray[np.int64]) -> NDArray[np.int64]:
        inline = np.empty(len(order), np.int64)
        inline[order] = np.array(placed, np.int64)
        overflow = np.array(self._pages, np.int64) * layout.PAGE + layout.PAGE_HEADER
        return np.where(inline < 0, overflow, inline)

    def close(self) -> None:
        self._inline.close()
