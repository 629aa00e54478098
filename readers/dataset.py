"""A packed dataset, opened for random access."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from readers.access import AccessOption
from readers.checksum import BLOCK_SIZE, digest, file_checksum
from readers.errors import CorruptDatasetError, DatasetNotFoundError, FormatError
from readers.fetching import Extents, Fetch, bring_near, make_fetch
from readers.folder import Folder
from readers.index import Index
from readers.manifest import INDEX, MANIFEST, SEGMENTS, File, Manifest, parse_manifest
from readers.sample import Image, Pixels, Sample, bytes_of
from readers.segments import Segments
from readers.span import reading
from readers.storage import Storage
from readers.survey import Survey, survey
from readers.yuv import Yuv420, yuv_length

Check = Literal["first", "always", "never"]
"""When the bytes of an image are held against their checksum: the first time that a process reads
it, each time, or never. The index is checked when a process opens it, unless never."""


class Dataset:
    """A `readers.protocols.Reader` for every format whose images are contiguous in their shard.

    Nothing but the manifest is opened before the first use. It is safe with threads, after a fork
    and under spawn: a pickle holds the path and the options alone. Several may be open on one path.
    It never writes and never locks.
    """

    def __init__(
        self,
        root: Path,
        *,
        copy: bool = True,
        check: Check = "first",
        access: AccessOption = None,
    ) -> None:
        self._root = root
        self._absolute = root.absolute()
        self._copy = copy
        self._access = access
        self._check = check
        folder = Folder(root)
        text = _read_manifest(folder)
        self._folder: Folder | None = folder
        self._seal = digest(text)
        self._manifest = parse_manifest(text, root / MANIFEST)
        self._records: _Records | None = None

    @property
    def root(self) -> Path:
        """The dataset's directory."""
        return self._root

    @property
    def manifest(self) -> Manifest:
        """What the dataset says of itself."""
        return self._manifest

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes in the order of their labels; empty without labels."""
        return self._manifest.classes

    @property
    def labels(self) -> NDArray[np.int32]:
        """Label of every sample, shape (samples,), memory-mapped; -1 without labels."""
        return self.index.labels

    @property
    def index(self) -> Index:
        """The rows of the dataset: keys, sizes, checksums, places."""
        return self._ready().index

    def storage(self) -> Storage:
        """Says what the dataset lies on."""
        return self._opened().storage()

    def survey(self) -> Survey:
        """Says what the dataset lies on, how fast that answers, and how it is read therefore.

        It reads some megabytes in a second at most, unless it has before.
        """
        return survey(self._opened(), self._manifest, self._access, copy=self._copy, always=True)

    def __len__(self) -> int:
        return self._manifest.samples

    def __iter__(self) -> Iterator[Sample]:
        """Reads all samples in order."""
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int, /) -> Sample:
        """Reads one sample.

        Raises:
            IndexError: There is no such sample.
            CorruptDatasetError: The dataset is damaged there.
        """
        return self._ready().read([self._row(index)])[0]

    def read_many(self, indices: Sequence[int] | NDArray[np.int64], /) -> list[Sample]:
        """Reads samples, in the order asked; repeats are allowed.

        Args:
            indices: Positions of the samples, integers of any kind.

        Raises:
            IndexError: There is no such sample.
            CorruptDatasetError: The dataset is damaged at one of them.
        """
        return self._ready().read(self.rows(indices))

    def read_ahead(
        self, indices: Sequence[int] | NDArray[np.int64], /
    ) -> Callable[[], list[Sample]] | None:
        """Begins to read samples while the caller does something else.

        Args:
            indices: Positions of the samples, integers of any kind.

        Returns:
            What waits for the samples and gives them, and raises, as `read_many` does; None where
            nothing is gained, because the storage is near. Let go of, it reads no further.

        Raises:
            IndexError: There is no such sample.
            CorruptDatasetError: The index is damaged at one of them.
        """
        return self._ready().begin(self.rows(indices))

    def rows(self, indices: Sequence[int] | NDArray[np.int64], /) -> list[int]:
        """Gives positions as numbers from 0 on.

        Raises:
            IndexError: There is no such sample.
        """
        rows = np.asarray(indices)
        if rows.size == 0:
            return []
        if rows.ndim != 1 or rows.dtype.kind not in "iuO":
            raise TypeError(f"indices must be a sequence of integers, not {indices!r}")
        if rows.dtype.kind == "O" or int(rows.min()) < 0 or int(rows.max()) >= len(self):
            return [self._row(index) for index in rows.tolist()]
        found: list[int] = rows.tolist()
        return found

    def sample(self, row: int, image: Image) -> Sample:
        """Gives a sample without reading its image, with another one in its place.

        Raises:
            CorruptDatasetError: The index is damaged there.
        """
        records = self._ready()
        return records.sample(row, self.index.labels.item(row), image)

    def close(self) -> None:
        """Gives back files and mappings. Closing twice is fine; reading afterwards raises."""
        self._folder = None
        self._records = None

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
        return _reopen, (self._absolute, self._copy, self._check, self._access, self._seal)

    def __repr__(self) -> str:
        return f"<{self._manifest.format} dataset {self._root}: {len(self)} samples>"

    @property
    def segments(self) -> Segments | None:
        """The restart segments of rewritten JPEGs; None in a dataset without."""
        return self._ready().segments

    def _ready(self) -> _Records:
        records = self._records
        if records is None:
            records = self._records = _Records(
                self._opened(), self._manifest, self._access, copy=self._copy, check=self._check
            )
        return records

    def _opened(self) -> Folder:
        if self._folder is None:
            raise ValueError(f"{self!r} is closed")
        return self._folder

    def _row(self, index: int) -> int:
        samples = len(self)
        number = operator.index(index)
        row = number + samples if number < 0 else number
        if not 0 <= row < samples:
            raise IndexError(f"sample {index} of {samples} in {self._root}")
        return row


def _reopen(
    root: Path,
    copy: bool,  # noqa: FBT001 - pickle's
    check: Check,
    access: AccessOption,
    seal: bytes,
) -> Dataset:
    dataset = Dataset(root, copy=copy, check=check, access=access)
    if dataset._seal != seal:  # noqa: SLF001 - the class's own way out of a pickle
        raise FormatError(
            f"{root} was replaced by another dataset since the reader was made; open it anew",
            path=str(root),
        )
    return dataset


def _read_manifest(folder: Folder) -> bytes:
    root = folder.path
    try:
        return folder.read(MANIFEST)
    except FileNotFoundError as error:
        inside = sorted(path.parent.name for path in root.glob(f"*/{MANIFEST}"))
        found = (
            f"holds the datasets {', '.join(inside)}: open one of them"
            if inside
            else f"has no {MANIFEST}, so it is no complete dataset; 'packer convert' makes one"
        )
        raise DatasetNotFoundError(f"{root} {found}", path=str(root)) from error


def _map_checked(folder: Folder, file: File, check: Check) -> memoryview:
    """Maps a table and holds it against its checksum: a wrong label would be no error otherwise."""
    table, path = folder.map(file), folder.path / file.name
    if check == "never":
        return table
    starts = range(0, len(table), BLOCK_SIZE)
    if file_checksum(digest(table[s : s + BLOCK_SIZE]) for s in starts) != file.checksum:
        raise CorruptDatasetError(
            f"{path} is damaged: its bytes don't match their checksum; restore it or pack the "
            "dataset again",
            path=str(path),
        )
    return table


class _Records:
    """What a process has open of a dataset."""

    def __init__(
        self,
        folder: Folder,
        manifest: Manifest,
        access: AccessOption,
        *,
        copy: bool,
        check: Check,
    ) -> None:
        if folder.storage().kind == "network":
            for table in (manifest.index, manifest.segments):
                if table is not None:
                    bring_near(folder, table)
        rows = _map_checked(folder, manifest.index, check)
        self.index = Index(rows, manifest.samples, folder.path / INDEX)
        self.segments: Segments | None = None
        if manifest.segments is not None:
            lists = _map_checked(folder, manifest.segments, check)
            self.segments = Segments(lists, manifest.samples, folder.path / SEGMENTS)
        self._folder = folder
        self._manifest = manifest
        self._files = tuple(shard.files[0] for shard in manifest.shards)
        self._sizes = tuple(file.bytes for file in self._files)
        self._access = access
        self._copy = copy
        self._fetch: Fetch | None = None
        self._classes = len(manifest.classes)
        self._has_fields = bool(manifest.fields)
        self._planes = manifest.color == "yuv420"
        self._check = check
        self._checked = bytearray(-(-manifest.samples // 8))

    def read(self, rows: list[int]) -> list[Sample]:
        extents, labels = self._extents(rows)
        fetch = self._fetch or self._chosen()
        with reading:
            images = fetch.read(extents)
        return self._samples(rows, labels, images)

    def begin(self, rows: list[int]) -> Callable[[], list[Sample]] | None:
        fetch = self._fetch or self._chosen()
        extents, labels = self._extents(rows)
        wait = fetch.begin(extents)
        if wait is None:
            return None

        def finish() -> list[Sample]:
            with reading:
                images = wait()
            return self._samples(rows, labels, images)

        return finish

    def _chosen(self) -> Fetch:
        """Chooses how to read when that is first done, for it may take a second to find out."""
        folder, manifest, copy = self._folder, self._manifest, self._copy
        access = survey(folder, manifest, self._access, copy=copy).choice.access
        self._fetch = fetch = make_fetch(
            folder, self._files, access, copy=copy, pixels=manifest.pixels
        )
        return fetch

    def _extents(self, rows: list[int]) -> tuple[Extents, list[int]]:
        sizes, files = self._sizes, len(self._sizes)
        numbers, offsets, lengths, labels = self.index.places(rows)
        for row, number, offset, length in zip(rows, numbers, offsets, lengths, strict=True):
            if not 0 <= number < files or not 0 <= offset <= offset + length <= sizes[number]:
                raise self._corrupt(row, "its place lies outside of the shards")
        return Extents(numbers, offsets, lengths), labels

    def _samples(self, rows: list[int], labels: list[int], images: list[Image]) -> list[Sample]:
        segments = self.segments
        checks, checked = self._check != "never", self._checked
        samples = []
        for row, label, image in zip(rows, labels, images, strict=True):
            if checks and not checked[row >> 3] >> (row & 7) & 1:
                self._hold_against_checksum(row, image)
            shaped = self._shaped(row, image) if isinstance(image, np.ndarray) else image
            own = None if segments is None else segments[row]
            samples.append(self.sample(row, label, shaped, own))
        return samples

    def sample(
        self, row: int, label: int, image: Image, segments: NDArray[np.uint16] | None = None
    ) -> Sample:
        index = self.index
        if label >= self._classes:
            raise self._corrupt(row, f"its label {label} is none of {self._classes} classes")
        return Sample(
            index.key(row),
            image,
            label if label >= 0 else None,
            index.extra(row) if self._has_fields else {},
            index.path(row),
            segments,
        )

    def _hold_against_checksum(self, row: int, image: Image) -> None:
        if digest(bytes_of(image)) != self.index.checksums[row].tobytes():
            raise self._corrupt(row, "its bytes don't match their checksum")
        if self._check == "first":
            self._checked[row >> 3] |= 1 << (row & 7)

    def _shaped(self, row: int, image: Pixels) -> Pixels | Yuv420:
        height, width = self.index.heights.item(row), self.index.widths.item(row)
        if self._planes:
            if height < 0 or width < 0 or yuv_length(height, width) != len(image):
                raise self._corrupt(row, f"{len(image)} bytes are no planes of {height} x {width}")
            return Yuv420(image, height, width)
        if height < 0 or width < 0 or height * width * 3 != len(image):
            raise self._corrupt(row, f"{len(image)} bytes are no {height} x {width} x 3 pixels")
        return image.reshape(height, width, 3)

    def _corrupt(self, row: int, reason: str) -> CorruptDatasetError:
        number, offset = self.index.shards.item(row), self.index.offsets.item(row)
        shard = self._files[number].name if 0 <= number < len(self._files) else None
        key = self.index.key(row)
        return CorruptDatasetError(
            f"sample {row} ({key!r}) in {self._folder.path / (shard or INDEX)} at byte {offset} is "
            f"damaged: {reason}; run 'packer verify', then restore the shard or pack again",
            path=str(self._folder.path),
            shard=shard,
            offset=offset,
            key=key,
        )
