"""WebDataset shards that other tools wrote, read in place.

`packer.sources.tar_samples` says what a sample is. The samples keep their order, shards in the
order of their names. A shard that is cut or damaged gives its whole samples and then one that
can't be used; so do samples without an image, or without a label where others have one.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import xxhash

from packer.sources.field_types import FieldTypes, type_of_value, value_as
from packer.sources.findings import Findings
from packer.sources.image_file import refuse_other_files, stamp_of
from packer.sources.labels import UNLABELLED, LabelColumn
from packer.sources.repeats import repeats
from packer.sources.row_table import RowTable, RowTableWriter
from packer.sources.tar_samples import TarSample, TarShard
from readers.errors import SampleError, SourceError
from readers.sample import Sample
from readers.yuv import Color


class TarSource:
    """The samples of a WebDataset.

    Args:
        path: A tar file, or a folder of them.
        classes: Names of the classes in the order of their labels; None to make them up.
        spool: Directory for temporary files, which hold the listing; None for the system's.

    Raises:
        SourceError: A shard can't be read, a key is there twice, the members of a sample aren't
            adjacent, or a label is none of the classes.
        StorageError: The listing can't be spooled.
    """

    kind = "webdataset"
    pixels = False
    segments = False
    color: Color = "rgb"
    shape: tuple[int, int, int] | None = None

    def __init__(
        self, path: Path, *, classes: Sequence[str] | None = None, spool: Path | None = None
    ) -> None:
        self._shards = _tar_files(path) if path.is_dir() else (path,)
        self._prefixed = path.is_dir()
        self._sizes: list[int] = []
        findings = Findings()
        labels = LabelColumn(path)
        types = FieldTypes("json")
        self._rows, hashes, digest = self._spool(findings, labels, types, spool)
        self._refuse_repeats(hashes)
        self.fields: Mapping[str, str] = types.settle()
        self.classes, self._labels = labels.settle(classes, self._where)
        if classes and not self.classes:
            findings.note(path.name, "has no labels", used=True)
        self.report = findings.report()
        digest.update(self._labels.tobytes())
        digest.update(json.dumps([self.kind, self.classes, list(self.fields.items())]).encode())
        self.fingerprint = digest.hexdigest()

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Sample:
        """Reads a sample.

        Args:
            index: Its position; negative from the end.

        Raises:
            IndexError: There is no such sample.
            NotAnImageError: It is no image, and claims none by its suffix.
            SampleError: It can't be used.
        """
        number, sample = self._row(index)
        shard = self._shards[number].name
        path = self._path(number, sample)
        if sample.error is not None:
            raise SampleError(
                sample.error, path=path, shard=shard, offset=sample.offset, key=sample.key
            )
        label = int(self._labels[index])
        if label == UNLABELLED and self.classes:
            raise SampleError(
                f"{shard}: the sample {sample.key!r} lacks a label (no field cls), others have one",
                path=path,
                shard=shard,
                offset=sample.offset,
                key=sample.key,
            )
        image = self._read(number, sample, path)
        refuse_other_files(image, path, sample.key)
        extra = {name: value_as(sample.extra.get(name), kind) for name, kind in self.fields.items()}
        return Sample(sample.key, image, None if label == UNLABELLED else label, extra, path)

    def stamp(self, index: int) -> bytes:
        """Changes when the shard that a sample lies in does."""
        return stamp_of(os.fsencode(self._shards[self._row(index)[0]]))

    def path(self, index: int) -> str:
        """Gives the name of the image's member, after that of its shard in a folder of shards."""
        return self._path(*self._row(index))

    def _row(self, index: int) -> tuple[int, TarSample]:
        number, *values = json.loads(self._rows[index])
        return number, TarSample(*values)

    def _path(self, number: int, sample: TarSample) -> str:
        return f"{self._shards[number].name}/{sample.name}" if self._prefixed else sample.name

    def _where(self, index: int) -> str:
        number, sample = self._row(index)
        return f"{self._shards[number]}, sample {sample.key!r}"

    def _read(self, number: int, sample: TarSample, path: str) -> bytes:
        try:
            with _opened(self._shards[number]) as handle:
                same = os.fstat(handle).st_size == self._sizes[number]
                image = _pread(handle, sample.offset, sample.size)
        except OSError as error:
            raise SampleError(f"{path}: {error.strerror}", path=path, key=sample.key) from error
        if not same or len(image) != sample.size:
            raise SampleError(f"{path}: the shard has changed", path=path, key=sample.key)
        return image

    def _spool(
        self, findings: Findings, labels: LabelColumn, types: FieldTypes, spool: Path | None
    ) -> tuple[RowTable, array[int], xxhash.xxh3_128]:
        hashes = array("Q")
        digest = xxhash.xxh3_128()
        with RowTableWriter(spool) as writer:
            for number, shard in enumerate(self._shards):
                rows = []
                for sample in self._scan(shard, findings):
                    row = json.dumps([number, *sample]).encode()
                    digest.update(row)
                    rows.append(row)
                    hashes.append(
                        xxhash.xxh3_64_intdigest(sample.key.encode("utf-8", "surrogatepass"))
                    )
                    labels.add(sample.label)
                    for name, value in sample.extra.items():
                        types.add(name, type_of_value(value))
                writer.extend(rows)
            return writer.finish(), hashes, digest

    def _scan(self, shard: Path, findings: Findings) -> Iterator[TarSample]:
        try:
            with _opened(shard) as handle:
                size = os.fstat(handle).st_size
                self._sizes.append(size)
                yield from TarShard(partial(_pread, handle), size, shard.name, findings)
        except OSError as error:
            raise SourceError(f"{shard}: {error.strerror}", path=os.fspath(shard)) from error

    def _refuse_repeats(self, hashes: array[int]) -> None:
        for group in repeats(np.asarray(hashes, np.uint64)):
            seen: dict[str, int] = {}
            for number, sample in map(self._row, group):
                shard = self._shards[number]
                if sample.key in seen:
                    other = self._shards[seen[sample.key]]
                    place = f"is in {other.name} too, but a key names one sample of the dataset"
                    if other == shard:
                        place = "is there before, but the members of a sample must be adjacent"
                    raise SourceError(
                        f"{shard}: the sample {sample.key!r} at offset {sample.offset} {place}",
                        path=os.fspath(shard),
                        shard=shard.name,
                        offset=sample.offset,
                        key=sample.key,
                    )
                seen[sample.key] = number


def _tar_files(folder: Path) -> tuple[Path, ...]:
    """Lists the tar files in a folder, in the order of their names' bytes."""
    try:
        found = [file for file in folder.iterdir() if file.suffix.lower() == ".tar"]
    except OSError as error:
        raise SourceError(f"{folder}: {error.strerror}", path=os.fspath(folder)) from error
    return tuple(sorted((file for file in found if file.name[0] != "."), key=os.fsencode))


@contextmanager
def _opened(shard: Path) -> Iterator[int]:
    handle = os.open(shard, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _pread(handle: int, offset: int, size: int) -> bytes:
    """Reads up to `size` bytes at an offset; fewer only where the file ends."""
    data = os.pread(handle, size, offset)
    pieces = [data]
    while data and size > len(data):
        size -= len(data)
        offset += len(data)
        data = os.pread(handle, size, offset)
        pieces.append(data)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
