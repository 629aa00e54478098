"""Pixels of a dataset's images, decoded once."""

from __future__ import annotations

import json
import operator
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from readers.dataset import Dataset
from readers.decode import MAX_PIXELS
from readers.errors import (
    DatasetNotFoundError,
    OptionError,
    SampleError,
    StorageError,
    StorageFullError,
)
from readers.fitting import Fit, describe, fitted, libraries
from readers.manifest import MANIFEST, Manifest
from readers.opening import open_dataset
from readers.pixel_cache.places import Places
from readers.pixel_cache.publication import publish
from readers.pixel_cache.store import Store
from readers.registry import FORMATS
from readers.sample import JsonValue, Pixels, Sample, as_rgb
from readers.span import decoding, reading
from readers.yuv import OPENCV, opencv_version

SUFFIX = ".filling"
SHARD_SAMPLES = FORMATS["npy"].shard_samples


class PixelCache:
    """A source of a dataset's samples whose images are pixels, decoded at first access.

    ::

        cache = PixelCache(open_dataset("/nfs/photos.lmdb"), "/ssd/photos.npy", size=256)

    The pixels are kept in `NAME.filling` beside `path`, which any number of threads, processes and
    jobs on one machine may share; they are what `packer convert --image decode` makes. A kept image
    is a view of the memory-mapped file and may not be written to. When every sample has been asked
    for once, nothing is decoded any more, and `publish` makes a dataset of it under `path`: the
    same, byte for byte, as `packer convert` makes of the reader. A dataset that stands there
    already is used at once.

    Files that are torn by a crash are noticed, for what a process takes from the cache for the
    first time is held against its checksum, and made again. On a full disk it goes on without
    keeping more.

    It belongs on fast local storage: pixels are several times as large as JPEGs.

    Args:
        reader: The dataset whose images are decoded.
        path: Where the finished dataset is to stand.
        size: Height and width of the pixels, or one number for both; None for each image's own.
        fit: What becomes of an image of another shape, see `readers.fitting.Fit`.
        limit: Bytes that the pixels may take on disk. Samples beyond it, the last ones, are
            decoded at each access; which ones are kept never changes, for random order makes every
            choice as good.
        max_pixels: Limit of an image's own height x width; None for no limit.

    Raises:
        OptionError: What stands at the path is made of another dataset or with other options, or
            the options make no sense.
        StorageFullError: There is no room for all pixels.
        StorageError: The storage refuses.
    """

    def __init__(
        self,
        reader: Dataset,
        path: str | os.PathLike[str],
        *,
        size: int | tuple[int, int] | None = None,
        fit: Fit = "crop",
        limit: int | None = None,
        max_pixels: int | None = MAX_PIXELS,
    ) -> None:
        self._reader = reader
        self._path = Path(path).absolute()
        self._size = (size, size) if isinstance(size, int) else size
        self._fit = fit
        self._limit = limit
        self._max_pixels = max_pixels
        if fit not in ("crop", "pad"):
            raise OptionError(f"fit must be crop or pad, not {fit!r}")
        if self._size is not None and min(self._size) < 1:
            raise OptionError(f"size must be 1 or more, not {size}")
        self._opened: Dataset | Store | None = self._find()

    @property
    def reader(self) -> Dataset:
        """The dataset whose images are decoded."""
        return self._reader

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes in the order of their labels; empty without labels."""
        return self._reader.classes

    @property
    def labels(self) -> NDArray[np.int32]:
        """Label of every sample, shape (samples,), memory-mapped; -1 without labels."""
        return self._reader.labels

    @property
    def kept(self) -> int:
        """How many samples have their pixels in the cache."""
        kept = self._kept
        return kept.count() if isinstance(kept, Store) else len(kept)

    def __len__(self) -> int:
        return len(self._reader)

    def __iter__(self) -> Iterator[Sample]:
        """Reads all samples in order."""
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int, /) -> Sample:
        """Gives one sample.

        Raises:
            IndexError: There is no such sample.
            SampleError: Its image can't be decoded.
            CorruptDatasetError: The dataset is damaged there.
        """
        return self.read_many([operator.index(index)])[0]

    def read_many(self, indices: Sequence[int] | NDArray[np.int64], /) -> list[Sample]:
        """Gives samples, in the order asked; repeats are allowed.

        Raises:
            IndexError: There is no such sample.
            SampleError: An image can't be decoded.
            CorruptDatasetError: The dataset is damaged at one of them.
        """
        kept = self._kept
        if isinstance(kept, Dataset):
            return kept.read_many(indices)
        rows = self._reader.rows(indices)
        with reading:
            found = [kept.get(row) for row in rows]
        missing = [row for row, pixels in zip(rows, found, strict=True) if pixels is None]
        return self._completed(kept, rows, found, self._reader.read_many(missing))

    def read_ahead(
        self, indices: Sequence[int] | NDArray[np.int64], /
    ) -> Callable[[], list[Sample]] | None:
        """Begins to read of the reader what isn't kept, see `Dataset.read_ahead`.

        Raises:
            IndexError: There is no such sample.
            CorruptDatasetError: The reader's index is damaged at one of them.
        """
        kept = self._kept
        if isinstance(kept, Dataset):
            return kept.read_ahead(indices)
        rows = self._reader.rows(indices)
        found = [kept.get(row) for row in rows]
        missing = [row for row, pixels in zip(rows, found, strict=True) if pixels is None]
        wait = self._reader.read_ahead(missing) if missing else None
        if wait is None:
            return None
        return lambda: self._completed(kept, rows, found, wait())

    def publish(self) -> Manifest:
        """Makes the dataset of the pixels, when all are there.

        It reads all pixels once, for the checksums of the files. Whoever uses the cache meanwhile
        goes on undisturbed.

        Returns:
            The manifest of the dataset that now stands under the path.

        Raises:
            OptionError: Samples are missing, or the limit leaves some out.
            StorageError: The storage refuses.
        """
        kept = self._kept
        if isinstance(kept, Store):
            publish(kept, self._reader, self._path, self._options())
            kept = self._opened = self._find()
        if not isinstance(kept, Dataset):
            raise DatasetNotFoundError(f"{self._path} was removed", path=str(self._path))
        return kept.manifest

    def close(self) -> None:
        """Closes the cache and its reader. Closing twice is fine; reading afterwards raises."""
        if isinstance(self._opened, Dataset):
            self._opened.close()
        self._opened = None
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        again = partial(
            PixelCache,
            size=self._size,
            fit=self._fit,
            limit=self._limit,
            max_pixels=self._max_pixels,
        )
        return again, (self._reader, self._path)

    def __repr__(self) -> str:
        return f"<pixel cache {self._path}: {self.kept} of {len(self)} samples>"

    @property
    def _kept(self) -> Dataset | Store:
        if self._opened is None:
            raise ValueError(f"the pixel cache {self._path} is closed")
        return self._opened

    def _find(self) -> Dataset | Store:
        """Opens the finished dataset, or else the files that fill up."""
        if (self._path / MANIFEST).exists():
            dataset = open_dataset(self._path, copy=False)
            self._check(dataset.manifest)
            return dataset
        if os.path.lexists(self._path):
            raise OptionError(f"{self._path} exists and is no dataset: choose another path")
        places = Places(
            self._reader.index, self._size, limit=self._limit, shard_samples=SHARD_SAMPLES
        )
        if not places.samples:
            raise OptionError(f"not one image fits into {self._limit} bytes: raise the limit")
        filling = self._path.with_name(self._path.name + SUFFIX)
        try:
            store = Store(filling, places, self._identity())
        except (StorageError, StorageFullError):
            if (self._path / MANIFEST).exists():  # another process published it just now
                return self._find()
            raise
        if (self._path / MANIFEST).exists():  # likewise, and what was opened was made anew
            shutil.rmtree(filling, ignore_errors=True)
            return self._find()
        return store

    def _check(self, found: Manifest) -> None:
        own = self._reader.manifest
        if (
            found.source.get("fingerprint") != own.fingerprint
            or found.samples != own.samples
            or found.options["image"] != describe(self._size, self._fit)
            or found.options["shuffle"] is not None
        ):
            raise OptionError(
                f"{self._path} was not made of all of {self._reader.root} in its order with size "
                f"{self._size} and fit {self._fit!r}: choose another path"
            )

    def _options(self) -> dict[str, JsonValue]:
        """Gives those of `packer convert` that make the same dataset."""
        return {
            "image": describe(self._size, self._fit),
            "shard_size": None,
            "shard_samples": SHARD_SAMPLES,
            "shuffle": None,
            "max_pixels": self._max_pixels,
        }

    def _identity(self) -> bytes:
        facts = {
            "version": 1,
            "source": self._reader.manifest.fingerprint,
            "samples": len(self._reader),
            "image": describe(self._size, self._fit),
            "limit": self._limit,
            "max_pixels": self._max_pixels,
            "libraries": self._libraries(),
        }
        return json.dumps(facts, indent=1).encode()

    def _libraries(self) -> dict[str, str]:
        planar = self._reader.manifest.color == "yuv420"
        return libraries() | ({OPENCV: opencv_version()} if planar else {})

    def _completed(
        self, store: Store, rows: list[int], found: list[Pixels | None], read: list[Sample]
    ) -> list[Sample]:
        """Puts what is read now, and decoded, to what was kept."""
        fresh = iter(read)
        return [
            self._reader.sample(
                row, self._decoded(store, row, next(fresh)) if pixels is None else pixels
            )
            for row, pixels in zip(rows, found, strict=True)
        ]

    def _decoded(self, store: Store, row: int, sample: Sample) -> Pixels:
        with decoding:
            try:
                made = fitted(
                    as_rgb(sample.image), self._size, self._fit, max_pixels=self._max_pixels
                )
            except SampleError as error:
                raise SampleError(
                    f"sample {row} ({sample.key!r}) of {self._reader.root}: {error.message}",
                    path=sample.path,
                    key=sample.key,
                ) from error
        pixels = np.ascontiguousarray(made.pixels)
        store.put(row, pixels, made.decoder)
        pixels.flags.writeable = False
        return pixels
