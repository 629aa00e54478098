"""Writes npy shards."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packer.protocols import Contents, Record
from packer.shard_file import ShardFile, write_array
from readers.layout import npy as layout
from readers.manifest import File


class NpyShardWriter:
    """A `packer.protocols.ShardWriter` for `readers.layout.npy`."""

    def __init__(self, directory: Path, name: str, contents: Contents, /) -> None:
        self._directory = directory
        self._name = name
        self._contents = contents
        self._file = ShardFile(directory / (name + layout.SUFFIX), layout.HEADER_BYTES)
        self._offsets = array("q", [0])
        self._shapes = array("i")
        self._labels = array("i")

    @property
    def size(self) -> int:
        """Bytes of images and what goes with each of them so far."""
        return self._file.size

    def write(self, record: Record, /) -> None:
        """Adds a record."""
        self._file.append(record.image)
        self._offsets.append(self._offsets[-1] + len(record.image))
        self._shapes.extend((record.height, record.width, 3))
        self._labels.append(-1 if record.label is None else record.label)

    def finish(self) -> tuple[tuple[File, ...], NDArray[np.int64]]:
        """Completes the shard and flushes it to the medium."""
        offsets = np.array(self._offsets, np.int64)
        samples = len(self._labels)
        shape = self._contents.shape
        companions: list[File] = []
        if shape is None:
            head = layout.header("|u1", (self._offsets[-1],))
            shapes = np.array(self._shapes, np.int32).reshape(samples, 3)
            companions += [self._companion("offsets", offsets), self._companion("shapes", shapes)]
        else:
            head = layout.header("|u1", (samples, *shape))
        if self._contents.labelled:
            companions.append(self._companion("labels", np.array(self._labels, np.int32)))
        file = self._file.finish(head)
        return (file, *companions), offsets[:-1] + layout.HEADER_BYTES

    def abandon(self) -> None:
        """Gives files and threads back; what was written is incomplete and stays so."""
        self._file.abandon()

    def _companion(self, field: str, values: NDArray[np.int64] | NDArray[np.int32]) -> File:
        path = self._directory / f"{self._name}.{field}{layout.SUFFIX}"
        kind = f"<i{values.itemsize}"
        return write_array(path, layout.header(kind, values.shape), values.astype(kind))
