"""What the parts of a conversion must do for each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from readers.manifest import File, Skipped
from readers.protocols import Source
from readers.sample import JsonValue
from readers.yuv import Color


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What the look through a source found beside the samples."""

    litter: int = 0
    """Files that operating systems and editors leave behind, left out."""
    notes: tuple[Skipped, ...] = ()
    """What else was left out or is odd, by name: dead links, loops, folders that are no class."""


class PackSource(Source, Protocol):
    """A source that can be packed.

    Reading a sample raises `SampleError` where the sample can't be used, and `NotAnImageError`
    where the file is no image and doesn't claim to be one.
    """

    @property
    def kind(self) -> str:
        """What it is, as the manifest records it.

        `folder`, `list`, `webdataset`, `tfrecord`, `parquet`, `arrow` or `dataset`.
        """

    @property
    def fields(self) -> Mapping[str, str]:
        """Type of each extra field by name: `bool`, `int`, `float`, `string` or `json`."""

    @property
    def pixels(self) -> bool:
        """Whether the images are pixels rather than encoded files."""

    @property
    def shape(self) -> tuple[int, int, int] | None:
        """(height, width, 3) where all images are pixels of one size."""

    @property
    def color(self) -> Color:
        """What pixels are, if samples hold any."""

    @property
    def segments(self) -> bool:
        """Whether samples may come with `Sample.segments`."""

    @property
    def report(self) -> SourceReport:
        """What was left out."""

    @property
    def fingerprint(self) -> str:
        """Hex digest of the listing: equal for equal keys, paths, labels, classes and fields."""

    def path(self, index: int, /) -> str:
        """Path of a sample, known without reading it."""

    def stamp(self, index: int, /) -> bytes:
        """Changes when the file of a sample does: what the system says of it without reading it.

        Empty where files can't change, or there is no file any more.
        """


@dataclass(frozen=True, slots=True)
class Record:
    """One sample, ready to be written."""

    key: str
    path: str
    label: int | None
    extra: Mapping[str, JsonValue]
    image: bytes | memoryview
    """Bytes of the encoded image, or of the pixels in C order."""
    type: str
    """One of `readers.header.IMAGE_TYPES`; `pixels` for decoded ones."""
    height: int
    """Rows as stored; 0 where unknown."""
    width: int
    """Columns as stored; 0 where unknown."""
    orientation: int
    """EXIF orientation of the stored bytes, 1 to 8; 1 where there is none."""
    checksum: bytes
    """XXH3-128 of `image`, 16 bytes."""
    decoder: str | None = None
    """Library that decoded the image; None where it was kept undecoded."""
    note: str | None = None
    """What was odd about the image, though it was used."""
    segments: NDArray[np.uint16] | None = None
    """As in `readers.sample.Sample.segments`."""
    bad: bool = False
    """Whether the image can't be used and is stored all the same; `note` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What the records of a dataset have in common."""

    pixels: bool
    """Whether images are pixels rather than encoded files."""
    shape: tuple[int, ...] | None
    """Shape of the bytes of an image where all are pixels of one size: (height, width, 3), or
    that of planes (`readers.yuv.stored_shape`)."""
    classes: tuple[str, ...]
    """Names of the classes in the order of their labels; empty without labels."""
    fields: Mapping[str, str]
    """Type of each extra field by name: `bool`, `int`, `float`, `string` or `json`."""

    @property
    def labelled(self) -> bool:
        """Whether there are labels."""
        return bool(self.classes)

    @property
    def extra(self) -> bool:
        """Whether there are extra fields."""
        return bool(self.fields)


class ShardWriter(Protocol):
    """Puts records, in order, into one new shard.

    It is constructed with an empty directory, the shard's name without suffix, and the contents.
    What it writes depends on the records alone.
    """

    def __init__(self, directory: Path, name: str, contents: Contents, /) -> None: ...

    @property
    def size(self) -> int:
        """Bytes of images and what goes with each of them so far."""

    def write(self, record: Record, /) -> None:
        """Adds a record.

        Raises:
            OSError: The storage refuses.
        """

    def finish(self) -> tuple[tuple[File, ...], NDArray[np.int64]]:
        """Completes the shard and flushes it to the medium.

        Returns:
            The files, the one with the images first, and where in it each record's image starts:
            int64, shape (records,), bytes.

        Raises:
            OSError: The storage refuses.
        """

    def abandon(self) -> None:
        """Gives files and threads back; what was written is incomplete and stays so."""
