"""Samples that lie in files of records, whoever wrote them: what all kinds of such files share.

The samples keep their order, files in the order of their names. Where two samples share a name, all
are named by file and row instead. A sample that can't be used is an error in its own place; so is
one without a label where others have one.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import xxhash

from packer.sources.field_types import FieldTypes, type_of_value, value_as
from packer.sources.findings import Findings
from packer.sources.image_file import stamp_of
from packer.sources.keys import image_suffix_size, is_text, key_of
from packer.sources.labels import UNLABELLED, LabelColumn
from packer.sources.repeats import repeats
from packer.sources.row_table import RowTable, RowTableWriter
from readers.errors import FormatError, SampleError, SourceError
from readers.sample import JsonValue, Sample
from readers.yuv import Color


class Found(NamedTuple):
    """What a look at a sample gives: all but its image."""

    place: tuple[int, int]
    """Where it lies, as its container understands it; the first number is told in messages."""
    key: str | None
    name: str | None
    """Path that it had before, UTF-8."""
    label: str | None
    extra: dict[str, JsonValue]
    error: str | None = None
    """Why the sample can't be used; None if it can."""


class Container(Protocol):
    """A kind of files of records."""

    kind: str
    unit: str
    """What the first number of a place counts, for messages."""

    def scan(self, file: Path, findings: Findings, /) -> Iterator[Found]:
        """Goes through the samples of a file.

        Raises:
            OSError: It can't be read.
            SourceError: It holds no images.
        """

    def read(self, file: Path, place: tuple[int, int], /) -> bytes:
        """Reads an image.

        Raises:
            FormatError: It is damaged, or there is none.
            OSError: It can't be read.
        """

    def class_names(self) -> Sequence[str] | Mapping[int, str]:
        """Gives what the files that were scanned say of their classes: all names, or some."""


class ContainedSource:
    """The samples of some files of one kind.

    Args:
        path: A file, or a folder of them.
        files: The files, in order.
        container: What their kind is.
        classes: Names of the classes in the order of their labels; None to take what is there.
        spool: Directory for temporary files, which hold the listing; None for the system's.

    Raises:
        SourceError: A file can't be read, or a label is none of the classes.
        StorageError: The listing can't be spooled.
    """

    pixels = False
    shape: tuple[int, int, int] | None = None
    segments = False
    color: Color = "rgb"

    def __init__(
        self,
        path: Path,
        files: Sequence[Path],
        container: Container,
        *,
        classes: Sequence[str] | None = None,
        spool: Path | None = None,
    ) -> None:
        self.kind = container.kind
        self._files = tuple(files)
        self._container = container
        self._sizes: list[int] = []
        findings = Findings()
        labels = LabelColumn(path)
        types = FieldTypes("json")
        self._rows, hashes, digest = self._spool(findings, labels, types, spool)
        self._named, self._pathed = (not any(repeats(np.asarray(h, np.uint64))) for h in hashes)
        if not self._named:
            findings.note(path.name, "names repeat, so samples are named by their rows", used=True)
        self.fields: Mapping[str, str] = types.settle()
        self.classes, self._labels = labels.settle(classes, self._where)
        if classes is None and self.classes:
            self.classes = self._named_classes(container.class_names())
        if classes and not self.classes:
            findings.note(path.name, "has no labels", used=True)
        self.report = findings.report()
        digest.update(self._labels.tobytes())
        facts = [self.kind, self.classes, list(self.fields.items()), self._named, self._pathed]
        digest.update(json.dumps(facts).encode())
        self.fingerprint = digest.hexdigest()

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Sample:
        """Reads a sample.

        Args:
            index: Its position; negative from the end.

        Raises:
            IndexError: There is no such sample.
            SampleError: It can't be used.
        """
        number, row, found = self._row(index)
        file = self._files[number]
        key, path = self._key(number, row, found), self._path(number, row, found)
        label = int(self._labels[index])
        reason = found.error
        if reason is None and label == UNLABELLED and self.classes:
            reason = "it lacks a label, others have one"
        if reason is not None:
            raise self._bad(number, row, found, reason)
        try:
            if file.stat().st_size != self._sizes[number]:
                raise self._bad(number, row, found, "the file has changed")
            image = self._container.read(file, found.place)
        except FormatError as error:
            raise self._bad(number, row, found, error.message) from error
        except OSError as error:
            raise self._bad(number, row, found, error.strerror or str(error)) from error
        extra = {name: value_as(found.extra.get(name), kind) for name, kind in self.fields.items()}
        return Sample(key, image, None if label == UNLABELLED else label, extra, path)

    def stamp(self, index: int) -> bytes:
        """Changes when the file that a sample lies in does."""
        return stamp_of(os.fsencode(self._files[self._row(index)[0]]))

    def path(self, index: int) -> str:
        """Gives the path that the sample had before, or else its file and row."""
        return self._path(*self._row(index))

    def _named_classes(self, names: Sequence[str] | Mapping[int, str]) -> tuple[str, ...]:
        """Puts the names that the files say in the place of numbers."""
        if isinstance(names, Mapping):
            return _renamed(self.classes, names)
        if names and len(self.classes) > len(names):
            first = int(np.argmax(self._labels >= len(names)))
            raise SourceError(
                f"{self._where(first)}: the label {self._labels[first]} is none of the "
                f"{len(names)} classes that the files name"
            )
        return tuple(names) or self.classes

    def _row(self, index: int) -> tuple[int, int, Found]:
        number, row, place, *values = json.loads(self._rows[index])
        return number, row, Found(tuple(place), *values)

    def _key(self, number: int, row: int, found: Found) -> str:
        key = _key_of(found) if self._named else None
        return f"{self._files[number].name.partition('.')[0]}/{row:08d}" if key is None else key

    def _path(self, number: int, row: int, found: Found) -> str:
        if self._pathed and found.name:
            return found.name
        return f"{self._files[number].name}/{row:08d}"

    def _where(self, index: int) -> str:
        number, row, found = self._row(index)
        return f"{self._files[number]}, {self._container.unit} {found.place[0]}, row {row}"

    def _bad(self, number: int, row: int, found: Found, reason: str) -> SampleError:
        file = self._files[number].name
        key = self._key(number, row, found)
        place = f"{self._container.unit} {found.place[0]}"
        return SampleError(
            f"{file}: sample {row} ({key!r}) at {place} can't be used: {reason}",
            path=self._path(number, row, found),
            shard=file,
            offset=found.place[0] if self._container.unit == "offset" else None,
            key=key,
        )

    def _spool(
        self, findings: Findings, labels: LabelColumn, types: FieldTypes, spool: Path | None
    ) -> tuple[RowTable, tuple[array[int], array[int]], xxhash.xxh3_128]:
        keys, paths = array("Q"), array("Q")
        digest = xxhash.xxh3_128()
        with RowTableWriter(spool) as writer:
            for number, file in enumerate(self._files):
                for row, found in enumerate(self._scan(file, findings)):
                    text = json.dumps([number, row, *found]).encode()
                    digest.update(text)
                    writer.extend([text])
                    for name, hashes in ((_key_of(found), keys), (found.name, paths)):
                        unique = name or f"{number}\0{row}"
                        data = unique.encode("utf-8", "surrogatepass")
                        hashes.append(xxhash.xxh3_64_intdigest(data))
                    labels.add(found.label)
                    for name, value in found.extra.items():
                        types.add(name, type_of_value(value))
            return writer.finish(), (keys, paths), digest

    def _scan(self, file: Path, findings: Findings) -> Iterator[Found]:
        try:
            self._sizes.append(file.stat().st_size)
            yield from self._container.scan(file, findings)
        except OSError as error:
            raise SourceError(f"{file}: {error.strerror or error}", path=os.fspath(file)) from error


def _key_of(found: Found) -> str | None:
    """Gives the key that a sample brings along, or makes it of its path as folders have it."""
    name = (found.key or found.name or "").encode("utf-8", "surrogateescape")
    cut = 0 if found.key else image_suffix_size(name)
    return key_of(name, cut, 0 if is_text(name) else 1) or None


def _renamed(classes: tuple[str, ...], names: Mapping[int, str]) -> tuple[str, ...]:
    """Puts names in the place of numbers, where that leaves all of them different."""
    renamed = tuple(names.get(number, name) for number, name in enumerate(classes))
    return renamed if len(set(renamed)) == len(renamed) else classes
