"""Writes WebDataset shards."""

from __future__ import annotations

import json
from array import array
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packer.protocols import Contents, Record
from packer.shard_file import ShardFile
from readers.header import SUFFIX_OF
from readers.layout import webdataset as layout
from readers.manifest import File

SUFFIX = ".tar"


class WebDatasetShardWriter:
    """A `packer.protocols.ShardWriter` for `readers.layout.webdataset`."""

    def __init__(self, directory: Path, name: str, contents: Contents, /) -> None:
        self._file = ShardFile(directory / (name + SUFFIX))
        self._contents = contents
        self._offsets = array("q")

    @property
    def size(self) -> int:
        """Bytes of images and what goes with each of them so far."""
        return self._file.size

    def write(self, record: Record, /) -> None:
        """Adds a record."""
        stem = layout.member_stem(record.key)
        self._offsets.append(self._append(f"{stem}.{SUFFIX_OF[record.type]}", record.image))
        if self._contents.labelled:
            label = -1 if record.label is None else record.label
            self._append(f"{stem}.cls", str(label).encode())
        if self._contents.extra:
            self._append(f"{stem}.json", json.dumps(dict(record.extra)).encode())

    def finish(self) -> tuple[tuple[File, ...], NDArray[np.int64]]:
        """Completes the shard and flushes it to the medium."""
        self._file.append(layout.END)
        return (self._file.finish(),), np.array(self._offsets, np.int64)

    def abandon(self) -> None:
        """Gives files and threads back; what was written is incomplete and stays so."""
        self._file.abandon()

    def _append(self, name: str, data: bytes | memoryview) -> int:
        self._file.append(layout.member_header(name, len(data)))
        start = self._file.size
        self._file.append(data)
        self._file.append(layout.padding(len(data)))
        return start
