"""Writes HDF5 shards: we stream the images, libhdf5 writes everything around them.

libhdf5 can't extend a contiguous dataset. So a sparse twin of the shard is made when its size is
known: with all structures and small datasets, and with room for the images that is never written
to. What stands before and behind that room then goes before and behind the streamed images.
"""

from __future__ import annotations

import json
from array import array
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from packer.protocols import Contents, Record
from packer.shard_file import ShardFile
from packer.spool import Spool
from readers.checksum import BLOCK_SIZE
from readers.errors import CorruptDatasetError
from readers.layout import hdf5 as layout
from readers.manifest import File

_TABLE_BYTES = 64
"""Bytes of a sample in the tables beside the images, at most."""


class Hdf5ShardWriter:
    """A `packer.protocols.ShardWriter` for `readers.layout.hdf5`."""

    def __init__(self, directory: Path, name: str, contents: Contents, /) -> None:
        self._path = directory / (name + layout.SUFFIX)
        self._twin = directory / (name + ".twin")
        self._contents = contents
        self._file = ShardFile(self._path, layout.IMAGE_START)
        self._keys = Spool(directory)
        self._extras = Spool(directory)
        self._ends = array("q", [0])
        self._shapes = array("i")
        self._labels = array("i")

    @property
    def size(self) -> int:
        """Bytes of images and what goes with each of them so far."""
        return self._file.size + self._extras.size

    def write(self, record: Record, /) -> None:
        """Adds a record."""
        self._file.append(record.image)
        self._ends.append(self._ends[-1] + len(record.image))
        self._keys.append(record.key.encode())
        self._shapes.extend((record.height, record.width, 3))
        self._labels.append(-1 if record.label is None else record.label)
        if self._contents.extra:
            self._extras.append(json.dumps(dict(record.extra)).encode())

    def finish(self) -> tuple[tuple[File, ...], NDArray[np.int64]]:
        """Completes the shard and flushes it to the medium."""
        offsets = np.array(self._ends, np.int64)
        for spool in (self._keys, self._extras):
            spool.freeze()
        self._write_twin(offsets)
        with self._twin.open("rb") as twin:
            head = twin.read(layout.IMAGE_START)
            twin.seek(self._file.size)
            while block := twin.read(BLOCK_SIZE):
                self._file.append(block)
        self._twin.unlink()
        file = self._file.finish(head)
        with h5py.File(self._path, "r", locking=False) as stock:
            if stock["image"].nbytes != offsets[-1]:
                raise CorruptDatasetError(
                    f"{self._path}: libhdf5 finds {stock['image'].nbytes} of {offsets[-1]} bytes",
                    path=str(self._path),
                )
        self._close()
        return (file,), offsets[:-1] + layout.IMAGE_START

    def abandon(self) -> None:
        """Gives files and threads back; what was written is incomplete and stays so."""
        self._file.abandon()
        self._close()

    def _close(self) -> None:
        self._keys.close()
        self._extras.close()

    def _write_twin(self, offsets: NDArray[np.int64]) -> None:
        samples = len(self._labels)
        shape = self._contents.shape
        tables = self._keys.size + self._extras.size + samples * _TABLE_BYTES
        with self._twin.open("wb") as probe:
            # libhdf5 dies of a file that may not grow; this is an error instead.
            probe.truncate(self._file.size + tables + BLOCK_SIZE)
        with h5py.File(self._twin, "w", libver=("earliest", "v110"), locking=False) as twin:
            _reserve(twin, (offsets[-1],) if shape is None else (samples, *shape), self._path)
            if shape is None:
                twin.create_dataset("offsets", data=offsets)
            if shape is None and self._contents.pixels:
                shapes = np.array(self._shapes, np.int32).reshape(samples, 3)
                twin.create_dataset("shapes", data=shapes)
            if self._contents.labelled:
                twin.create_dataset("label", data=np.array(self._labels, np.int32))
            _write_texts(twin, "key", self._keys)
            if self._contents.extra:
                _write_texts(twin, "extra", self._extras)


def _reserve(twin: h5py.File, shape: tuple[int, ...], path: Path) -> None:
    """Makes the dataset `image` with room that libhdf5 never touches."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.CONTIGUOUS)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    properties.set_obj_track_times(False)
    space = h5py.h5s.create_simple(shape)
    made = h5py.h5d.create(twin.id, b"image", h5py.h5t.STD_U8LE, space, properties)
    start = made.get_offset()
    if all(shape) and start != layout.IMAGE_START:
        raise CorruptDatasetError(
            f"libhdf5 {h5py.version.hdf5_version} puts the first dataset at byte {start}, not "
            f"{layout.IMAGE_START}; install another version of h5py",
            path=str(path),
        )


def _write_texts(twin: h5py.File, name: str, texts: Spool) -> None:
    twin.create_dataset(name, data=np.frombuffer(texts.data, np.uint8))
    twin.create_dataset(f"{name}_offsets", data=texts.offsets())
