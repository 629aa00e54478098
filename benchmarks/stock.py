"""Reads samples without our readers: from the folder, and by the formats' own libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType

import h5py
import lmdb
import numpy as np
from numpy.typing import NDArray

from readers.dataset import Dataset
from readers.layout.lmdb import environment_key

ReadBatch = Callable[[NDArray[np.int64]], object]
"""Reads the samples of some rows."""


def read_files(tree: Path, dataset: Dataset) -> ReadBatch:
    """Reads the files that a dataset was packed from."""
    paths = [str(tree / dataset.index.path(row)) for row in range(len(dataset))]
    return lambda rows: [_content(paths[row]) for row in rows.tolist()]


@contextmanager
def read_with_lmdb(dataset: Dataset) -> Iterator[ReadBatch]:
    """Gets values by key within one transaction a batch."""
    keys = [environment_key(dataset.index.key(row)) for row in range(len(dataset))]
    shard = str(dataset.root / dataset.manifest.shards[0].name)
    with lmdb.open(
        shard, subdir=False, readonly=True, lock=False, readahead=False, max_dbs=3
    ) as environment:
        images = environment.open_db(b"image", create=False)

        def read(rows: NDArray[np.int64]) -> list[bytes | None]:
            with environment.begin(db=images) as transaction:
                return [transaction.get(keys[row]) for row in rows.tolist()]

        yield read


@contextmanager
def read_with_h5py(dataset: Dataset) -> Iterator[ReadBatch]:
    """Slices the flat dataset of all bytes."""
    with h5py.File(dataset.root / dataset.manifest.shards[0].name, "r") as file:
        images = file["image"]
        offsets = file["offsets"][:].tolist()
        yield lambda rows: [images[offsets[row] : offsets[row + 1]] for row in rows.tolist()]


STOCK_READERS: Mapping[str, tuple[str, Callable[[Dataset], AbstractContextManager[ReadBatch]]]] = (
    MappingProxyType(
        {
            "hdf5": ("h5py, slices of the flat dataset", read_with_h5py),
            "lmdb": ("lmdb, get by key", read_with_lmdb),
        }
    )
)
"""Name and opener by format, where the format's library reads at random from a single shard."""


def _content(path: str) -> bytes:
    with open(path, "rb") as stream:  # noqa: PTH123 - as a loop that is to be fast would
        return stream.read()
