"""Writes TFRecord shards."""

from __future__ import annotations

from array import array
from pathlib import Path

import crc32c
import numpy as np
from numpy.typing import NDArray

from packer.columns import Column, check_size, columns_of
from packer.protocols import Contents, Record
from packer.shard_file import ShardFile
from readers.layout import tfrecord as layout
from readers.manifest import File

_ROWS_AT_ONCE = 1 << 16


class TfrecordShardWriter:
    """A `packer.protocols.ShardWriter` for `readers.layout.tfrecord`."""

    def __init__(self, directory: Path, name: str, contents: Contents, /) -> None:
        self._file = ShardFile(directory / (name + layout.SUFFIX))
        self._index = directory / (name + layout.INDEX_SUFFIX)
        self._classes = contents.classes
        self._columns: list[tuple[str, Column]] = [
            (layout.feature_name(column.name), column) for column in columns_of(contents.fields)
        ]
        self._starts = array("q", [0])
        self._offsets = array("q")

    @property
    def size(self) -> int:
        """Bytes of images and what goes with each of them so far."""
        return self._file.size

    def write(self, record: Record, /) -> None:
        """Adds a record."""
        image = record.image
        check_size(record, layout.MAX_IMAGE)
        head = layout.record_head(self._entries(record), len(image), crc32c.crc32c)
        self._file.append(head)
        self._offsets.append(self._file.size)
        self._file.append(image)
        self._file.append(layout.record_foot(head, image, crc32c.crc32c))
        self._starts.append(self._file.size)

    def finish(self) -> tuple[tuple[File, ...], NDArray[np.int64]]:
        """Completes the shard and flushes it to the medium."""
        return (self._file.finish(), self._write_index()), np.array(self._offsets, np.int64)

    def abandon(self) -> None:
        """Gives files and threads back; what was written is incomplete and stays so."""
        self._file.abandon()

    def _entries(self, record: Record) -> bytes:
        entries = [
            layout.entry(layout.FILENAME, record.path.encode("utf-8", "surrogateescape")),
            layout.entry(layout.SOURCE_ID, record.key.encode()),
            layout.entry(layout.FORMAT, record.type.encode()),
            layout.entry(layout.HEIGHT, record.height),
            layout.entry(layout.WIDTH, record.width),
        ]
        if self._classes:
            known = record.label is not None
            label = -1 if record.label is None else record.label
            text = self._classes[label].encode() if known else b""
            entries += layout.entry(layout.LABEL, label), layout.entry(layout.TEXT, text)
        for name, column in self._columns:
            value = column.value(record)
            if value is not None:
                stored = value.encode() if isinstance(value, str) else value
                entries.append(layout.entry(name, stored))
        return b"".join(entries)

    def _write_index(self) -> File:
        file = ShardFile(self._index)
        try:
            for first in range(0, len(self._offsets), _ROWS_AT_ONCE):
                starts = self._starts[first : first + _ROWS_AT_ONCE + 1]
                lines = map(layout.index_line, starts, np.diff(starts).tolist())
                file.append(b"".join(lines))
            return file.finish()
        except OSError:
            file.abandon()
            raise
