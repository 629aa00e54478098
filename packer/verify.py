"""Proves that a dataset is whole: every byte of every file, every image, every row."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from packer.engines.local import InOrder, worker_count
from packer.fault import Fault
from packer.progress import Meter, OnProgress
from packer.rewrite import first_difference
from packer.segment_check import segments_fault
from packer.sources.repeats import repeats
from readers.checksum import BLOCK_SIZE, digest, file_checksum
from readers.dataset import Dataset
from readers.errors import CorruptDatasetError, StorageError
from readers.extents import read_extent
from readers.folder import Folder
from readers.header import IMAGE_TYPES
from readers.index import Index
from readers.manifest import INDEX, SEGMENTS, File
from readers.opening import open_dataset
from readers.segments import Segments
from readers.yuv import yuv_lengths

_WINDOW = 8 * BLOCK_SIZE


@dataclass(slots=True)
class Report:
    """What was found in a dataset."""

    samples: int
    nbytes: int = 0
    """Bytes that were read."""
    seconds: float = 0.0
    faults: list[Fault] = field(default_factory=list)


def verify(path: Path, *, workers: int = 0, on_progress: OnProgress | None = None) -> Report:
    """Reads a dataset whole and holds it against its checksums.

    Args:
        path: The dataset.
        workers: Threads; 0 for one a core.
        on_progress: Called from this thread, some ten times a second.

    Returns:
        The faults found, none for a whole dataset.

    Raises:
        DatasetNotFoundError: There is no complete dataset at the path.
        FormatError: The manifest is damaged or of a newer version.
    """
    with open_dataset(path, check="never") as dataset:
        return _Verification(dataset, Folder(path), Meter(on_progress)).run(worker_count(workers))


@dataclass(frozen=True, slots=True)
class _Window:
    """A part of a file, with the images that begin in it."""

    file: File
    start: int
    rows: NDArray[np.int64]


@dataclass(slots=True)
class _Seen:
    """What was seen in a window."""

    window: _Window
    digests: list[bytes]
    nbytes: int = 0
    faults: list[Fault] = field(default_factory=list)
    weight: int = 0


class _Verification:
    def __init__(self, dataset: Dataset, folder: Folder, meter: Meter) -> None:
        self._dataset = dataset
        self._manifest = dataset.manifest
        self._folder = folder
        self._meter = meter
        self._report = Report(self._manifest.samples)
        self._key_hashes = np.empty(0, np.uint64)
        self._index: Index | None = None
        self._segments: Segments | None = None
        self._windows: list[_Window] = []

    def run(self, workers: int) -> Report:
        self._meter.begin("verify", self._manifest.samples)
        self._open_index()
        self._lay_windows()
        positions = np.arange(len(self._windows), dtype=np.int64)
        digests: dict[str, list[bytes]] = {}
        seen_in: dict[str, list[Fault]] = {}
        for seen in InOrder(self._look, workers=workers, block=1).run(positions):
            name = seen.window.file.name
            digests.setdefault(name, []).extend(seen.digests)
            seen_in.setdefault(name, []).extend(seen.faults)
            self._report.nbytes += seen.nbytes
            self._meter.count(len(seen.window.rows), seen.nbytes)
        files = {window.file.name: window.file for window in self._windows}
        for name, file in files.items():
            faults = seen_in[name]
            if not faults and file_checksum(digests[name]) != file.checksum:
                faults = [self._outside(file)]
            self._report.faults += faults
        self._check_repeats()
        self._report.seconds = self._meter.seconds
        return self._report

    def _open_index(self) -> None:
        try:
            self._index, self._segments = self._dataset.index, self._dataset.segments
            self._key_hashes = np.zeros(len(self._index), np.uint64)
        except (CorruptDatasetError, StorageError) as error:
            name = Path(error.path or INDEX).name
            self._report.faults.append(Fault(error.message, name, error.offset))

    def _lay_windows(self) -> None:
        self._add_windows(self._manifest.index, np.empty(0, np.int64))
        if self._manifest.segments is not None:
            self._add_windows(self._manifest.segments, np.empty(0, np.int64))
        first = 0
        for number, shard in enumerate(self._manifest.shards):
            last = first + (0 if self._index is None else shard.samples)
            rows = np.arange(first, last, dtype=np.int64)
            first = last
            self._add_windows(shard.files[0], self._placed(number, shard.files[0], rows))
            for companion in shard.files[1:]:
                self._add_windows(companion, np.empty(0, np.int64))

    def _placed(self, number: int, file: File, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Gives the rows that lie in the shard, by offset; the others are faults."""
        index = self._index
        if index is None:
            return rows[:0]
        offsets, lengths = index.offsets[rows], index.lengths[rows]
        labels, types = index.labels[rows], index.types[rows]
        good = (index.shards[rows] == number) & (offsets >= 0) & (lengths >= 0)
        good &= offsets <= file.bytes - lengths
        good &= (labels >= -1) & (labels < max(1, len(self._manifest.classes)))
        good &= (types >= 0) & (types < len(IMAGE_TYPES))
        kind = "pixels" if self._manifest.color == "rgb" else self._manifest.color
        good &= (types == IMAGE_TYPES.index(kind)) == self._manifest.pixels
        if self._manifest.pixels:
            heights, widths = index.heights[rows].astype(np.int64), index.widths[rows]
            wanted = (
                heights * widths * 3
                if kind == "pixels"
                else yuv_lengths(heights, widths.astype(np.int64))
            )
            good &= (wanted == lengths) & self._has_shape(heights, widths)
        for row in rows[~good].tolist():
            fault = Fault(f"row {row} contradicts the manifest", INDEX)
            self._report.faults.append(fault)
        placed: NDArray[np.int64] = rows[good][np.argsort(offsets[good], kind="stable")]
        return placed

    def _has_shape(
        self, heights: NDArray[np.int64], widths: NDArray[np.int32]
    ) -> NDArray[np.bool_] | bool:
        shape = self._manifest.shape
        return True if shape is None else (heights == shape[0]) & (widths == shape[1])

    def _add_windows(self, file: File, rows: NDArray[np.int64]) -> None:
        """Cuts a file into windows, unless it is missing or of another size."""
        try:
            os.close(self._folder.open(file))
        except (CorruptDatasetError, StorageError) as error:
            self._report.faults.append(self._lost(file, error, rows))
            return
        starts = np.empty(0, np.int64) if self._index is None else self._index.offsets[rows]
        for start in range(0, max(file.bytes, 1), _WINDOW):
            first, last = np.searchsorted(starts, (start, start + _WINDOW))
            self._windows.append(_Window(file, start, rows[first:last]))

    def _lost(
        self, file: File, error: CorruptDatasetError | StorageError, rows: NDArray[np.int64]
    ) -> Fault:
        index = self._index
        if index is None or not len(rows):
            return Fault(error.message, file.name, error.offset)
        if error.offset is not None:
            rows = rows[index.offsets[rows] + index.lengths[rows] > error.offset]
        if not len(rows):
            return Fault(error.message, file.name, error.offset)
        key = index.key(int(rows[0]))
        return Fault(
            f"{error.message}; {len(rows)} samples from this one on are lost",
            file.name,
            error.offset,
            key,
        )

    def _look(self, number: int) -> _Seen:
        window = self._windows[number]
        file = window.file
        descriptor = self._folder.open(file)
        try:
            seen = _Seen(window, [])
            for start in range(window.start, min(window.start + _WINDOW, file.bytes), BLOCK_SIZE):
                block = read_extent(descriptor, start, min(BLOCK_SIZE, file.bytes - start))
                seen.digests.append(digest(block))
                seen.nbytes += len(block)
            if self._index is not None:
                seen.faults = list(self._bad_rows(self._index, window, descriptor))
        except OSError as error:
            fault = Fault(f"it can't be read: {error.strerror}", file.name, window.start)
            return _Seen(window, [], faults=[fault])
        finally:
            os.close(descriptor)
        return seen

    def _bad_rows(self, index: Index, window: _Window, descriptor: int) -> Iterator[Fault]:
        for row in window.rows.tolist():
            offset, length = index.offsets.item(row), index.lengths.item(row)
            data = read_extent(descriptor, offset, length)
            try:
                key = index.key(row)
                index.extra(row)
                segments = None if self._segments is None else self._segments[row]
            except CorruptDatasetError as error:
                yield Fault(error.message, Path(error.path or INDEX).name)
                continue
            self._key_hashes[row] = xxhash.xxh3_64_intdigest(key.encode())
            if digest(data) != index.checksums[row].tobytes():
                yield Fault(
                    "the image's bytes don't match their checksum", window.file.name, offset, key
                )
            elif segments is not None and (reason := segments_fault(data, segments)) is not None:
                yield Fault(reason, SEGMENTS, None, key)

    def _outside(self, file: File) -> Fault:
        """Finds the damage in a file whose images are all whole."""
        index = self._index
        offset = None if index is None else first_difference(self._dataset, file)
        if index is None or offset is None:
            return Fault("its bytes don't match their checksum", file.name)
        number = next(n for n, shard in enumerate(self._manifest.shards) if file in shard.files)
        if file != self._manifest.shards[number].files[0]:
            return Fault("its bytes are damaged", file.name, offset)
        rows = np.flatnonzero(index.shards == number)
        before = rows[index.offsets[rows] <= offset]
        key = index.key(int(before[np.argmax(index.offsets[before])] if len(before) else rows[0]))
        return Fault("the bytes around the images are damaged", file.name, offset, key)

    def _check_repeats(self) -> None:
        index = self._index
        if index is None or self._report.faults:
            return
        for rows in repeats(self._key_hashes):
            for row in rows[1:]:
                if index.key(row) == index.key(rows[0]):
                    fault = Fault(f"row {row} repeats row {rows[0]}", INDEX, None, index.key(row))
                    self._report.faults.append(fault)
