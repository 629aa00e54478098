"""A list of image files with their labels and further columns.

Paths are relative to a root, the folder of the list unless told otherwise, and never leave it.
`packer.sources.list_rows` says how lists are read, `packer.sources.labels` how labels become
numbers, `packer.sources.keys` what the keys are.
"""

from __future__ import annotations

import json
import os
import posixpath
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from packer.sources.field_types import (
    FieldTypes,
    type_of_cell,
    type_of_value,
    value_as,
    value_of_cell,
)
from packer.sources.findings import Findings
from packer.sources.image_file import read_image_file, stamp_of
from packer.sources.keys import (
    distinct_keys,
    image_suffix_size,
    is_text,
    key_group,
    key_of,
    text_of,
)
from packer.sources.labels import UNLABELLED, LabelColumn
from packer.sources.list_rows import JSON_SUFFIXES, Row, list_rows, refuse
from packer.sources.repeats import repeats
from packer.sources.row_table import RowTable, RowTableWriter
from readers.sample import Sample
from readers.yuv import Color

_ROW = struct.Struct("=QI")  # line, bytes of the path; path and extra fields follow
_MANY = 4096
_encode_json = json.JSONEncoder(ensure_ascii=False).encode


class ListSource:
    """The samples that a list names.

    Args:
        file: The list: `.csv`, `.tsv`, `.jsonl` or `.ndjson`.
        root: Folder that the paths start from; None for the list's own.
        path_column: Column of the paths; None for the first that is named like one.
        label_column: Column of the labels; None for the first that is named like one, if any.
        classes: Names of the classes in the order of their labels; None to make them up.
        spool: Directory for temporary files, which hold the listing; None for the system's.

    Raises:
        SourceError: The list is malformed, a path leaves the root or is there twice, or a label is
            missing or none of the classes. The message names the line.
        StorageError: The listing can't be spooled.
    """

    kind = "list"
    pixels = False
    segments = False
    color: Color = "rgb"
    shape: tuple[int, int, int] | None = None

    def __init__(
        self,
        file: Path,
        *,
        root: Path | None = None,
        path_column: str | None = None,
        label_column: str | None = None,
        classes: Sequence[str] | None = None,
        spool: Path | None = None,
    ) -> None:
        self._file = file
        base = os.path.abspath(file.parent if root is None else root)  # noqa: PTH100 - keeps links
        self._root = os.fsencode(posixpath.join(base, ""))
        self._is_json = file.suffix.lower() in JSON_SUFFIXES
        gathered = _Gathered(file, text_of(self._root), is_json=self._is_json)
        rows = list_rows(file, path_column=path_column, label_column=label_column)
        self._rows, digest = gathered.spool(rows, spool)
        self._cuts, self._escapes = self._settle_keys(gathered)
        self.fields: Mapping[str, str] = gathered.types.settle()
        self.classes, self._labels = self._settle_labels(gathered.labels, classes)
        findings = Findings()
        if gathered.labels.first_missing is not None:
            findings.note(file.name, "has no labels", used=True)
        self.report = findings.report()
        for part in (
            self._cuts,
            self._escapes,
            self._labels.tobytes(),
            json.dumps(["list", self.classes, list(self.fields.items())]).encode(),
        ):
            digest.update(part)
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
        row = self._rows[index]
        path, end = _path(row)
        key = key_of(path, self._cuts[index], self._escapes[index])
        text = text_of(path)
        label = int(self._labels[index])
        given = json.loads(row[end:])
        convert = value_as if self._is_json else value_of_cell
        extra = {name: convert(given.get(name), kind) for name, kind in self.fields.items()}
        image = read_image_file(self._root + path, text, key)
        return Sample(key, image, None if label == UNLABELLED else label, extra, text)

    def stamp(self, index: int) -> bytes:
        """Changes when the file of a sample does."""
        return stamp_of(self._root + _path(self._rows[index])[0])

    def path(self, index: int) -> str:
        """Gives the path of a sample, relative to the root."""
        return text_of(_path(self._rows[index])[0])

    def _line(self, index: int) -> int:
        return int(_ROW.unpack_from(self._rows[index])[0])

    def _settle_keys(self, gathered: _Gathered) -> tuple[bytes, bytes]:
        cuts, escapes = gathered.cuts, gathered.escapes
        for group in repeats(np.asarray(gathered.groups, np.uint64)):
            paths = [_path(self._rows[index])[0] for index in group]
            seen: dict[bytes, int] = {}
            for path, index in zip(paths, group, strict=True):
                if path in seen:
                    refuse(
                        self._file,
                        self._line(index),
                        f"{text_of(path)!r} is on line {self._line(seen[path])} already",
                    )
                seen[path] = index
            for index, cut, times in zip(group, *distinct_keys(paths), strict=True):
                cuts[index] = cut
                escapes[index] = times
        return bytes(cuts), bytes(escapes)

    def _settle_labels(
        self, labels: LabelColumn, classes: Sequence[str] | None
    ) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        missing = labels.first_missing
        if missing is not None and not labels.empty:
            refuse(self._file, self._line(missing), "has no label, others do")
        return labels.settle(classes, lambda index: f"{self._file}, line {self._line(index)}")


class _Gathered:
    """What is known of the rows beside the spooled listing, a few bytes each."""

    def __init__(self, file: Path, root: str, *, is_json: bool) -> None:
        self.labels = LabelColumn(file)
        self.types = FieldTypes("json" if is_json else "string")
        self.cuts = bytearray()
        self.escapes = bytearray()
        self.groups = array("Q")
        self._file = file
        self._root = root
        self._is_json = is_json

    def spool(self, rows: Iterator[Row], spool: Path | None) -> tuple[RowTable, xxhash.xxh3_128]:
        digest = xxhash.xxh3_128()
        with RowTableWriter(spool) as writer:
            pending: list[bytes] = []
            for row in rows:
                packed = self._take(row)
                digest.update(len(packed).to_bytes(8, "little"))
                digest.update(packed[8:])
                pending.append(packed)
                if len(pending) == _MANY:
                    writer.extend(pending)
                    pending = []
            writer.extend(pending)
            return writer.finish(), digest

    def _take(self, row: Row) -> bytes:
        try:
            path = self._relative(row).encode("utf-8", "surrogateescape")
            extra = _encode_json(row.extra).encode()
            (row.label or "").encode()
        except UnicodeEncodeError:
            refuse(self._file, row.line, "is no UTF-8; save the list as UTF-8")
        for name, value in row.extra.items():
            kind = type_of_value(value) if self._is_json else type_of_cell(str(value))
            self.types.add(name, kind)
        self.labels.add(row.label)
        self.cuts.append(image_suffix_size(path))
        self.escapes.append(not is_text(path))
        self.groups.append(xxhash.xxh3_64_intdigest(key_group(path)))
        return _ROW.pack(row.line, len(path)) + path + extra

    def _relative(self, row: Row) -> str:
        if not row.path or "\0" in row.path:
            refuse(self._file, row.line, f"{row.path!r} is no path")
        path = posixpath.normpath(posixpath.join(self._root, row.path))
        if not path.startswith(self._root):
            refuse(
                self._file,
                row.line,
                f"{row.path!r} lies outside the root {self._root!r}; write paths relative to a "
                "folder above them all, or in full, and name that folder with `--root`",
            )
        return path[len(self._root) :]


def _path(row: bytes) -> tuple[bytes, int]:
    """Gives a row's path, and where it ends."""
    end = _ROW.size + int(_ROW.unpack_from(row)[1])
    return row[_ROW.size : end], end
