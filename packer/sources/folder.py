"""A folder of images: one sub-folder a class, or flat and without labels.

A class is a sub-folder of the root; what lies deeper belongs to it. Its number is its place in the
sorted names (by their bytes, which for UTF-8 is the order of code points), whether or not it holds
a file. Files directly in the root are left out and named, unless they alone claim to be images by
their suffix: then they are the samples, without labels. `packer.sources.walk` has the order, what
is passed over and which links are followed; `packer.sources.keys` has the keys.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from types import MappingProxyType

import xxhash

from packer.protocols import SourceReport
from packer.sources.findings import Findings
from packer.sources.image_file import read_image_file, stamp_of
from packer.sources.keys import distinct_keys, image_suffix_size, key_of, text_of
from packer.sources.row_table import RowTable, RowTableWriter
from packer.sources.walk import Folder, walk
from readers.errors import SourceError
from readers.sample import Sample
from readers.yuv import Color

_FILE = struct.Struct("=IBB")  # position of the folder, cut, escapes; the name follows
_FOLDER = struct.Struct("=iI")  # label, bytes of the path; path and key follow
_UNLABELLED = -1
_SPLITS = (
    ("train", "training"),
    ("val", "valid", "validation", "dev"),
    ("test", "testing", "eval"),
)


class FolderSource:
    """The samples of a folder of images.

    Args:
        root: The folder.
        classes: Names of the classes in the order of their labels; None to take the sub-folders.
        spool: Directory for temporary files, which hold the listing; None for the system's.

    Raises:
        SourceError: A folder can't be listed, or isn't among the given classes.
        StorageError: The listing can't be spooled.
    """

    kind = "folder"
    fields: Mapping[str, str] = MappingProxyType({})
    pixels = False
    segments = False
    color: Color = "rgb"
    shape: tuple[int, int, int] | None = None

    def __init__(
        self,
        root: Path,
        *,
        classes: Sequence[str] | None = None,
        spool: Path | None = None,
    ) -> None:
        self._root = _as_root(root)
        findings = Findings()
        folders = walk(self._root, findings, allowed=classes or ())
        top = next(folders)
        chosen: Iterable[Folder]
        if _is_flat(self._root, top, classes or ()):
            for name in top.folders:
                findings.note(text_of(name), "folder without images beside images, left out")
            if classes:
                findings.note(".", "has no class folders, so no labels", used=True)
            self.classes: tuple[str, ...] = ()
            chosen = (top,)
        else:
            for name in top.files:
                findings.note(text_of(name), "file beside class folders, left out")
            self.classes = _settle(root, top, classes)
            for split in self.classes:
                if any(split.lower() in names for names in _SPLITS):
                    findings.note(split, "named like a split, but packed as a class", used=True)
            chosen = folders
        self._folders, self._files, self.fingerprint = _spool(chosen, self.classes, spool)
        self.report: SourceReport = findings.report()

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> Sample:
        """Reads a sample.

        Args:
            index: Its position; negative from the end.

        Raises:
            IndexError: There is no such sample.
            NotAnImageError: It is no image, and claims none by its suffix.
            SampleError: It can't be used.
        """
        path, key, label = self._locate(index)
        text = text_of(path)
        image = read_image_file(self._root + path, text, key)
        return Sample(key, image, None if label == _UNLABELLED else label, {}, text)

    def stamp(self, index: int) -> bytes:
        """Changes when the file of a sample does."""
        return stamp_of(self._root + self._locate(index)[0])

    def path(self, index: int) -> str:
        """Gives the path of a sample, relative to the folder."""
        return text_of(self._locate(index)[0])

    def _locate(self, index: int) -> tuple[bytes, str, int]:
        row = self._files[index]
        number, cut, escapes = _FILE.unpack_from(row)
        name = row[_FILE.size :]
        folder = self._folders[number]
        label, split = _FOLDER.unpack_from(folder)
        split += _FOLDER.size
        key = folder[split:].decode() + key_of(name, cut, escapes)
        return folder[_FOLDER.size : split] + name, key, label


def classes_of(folder: Path) -> tuple[str, ...]:
    """Lists the class folders of a folder, sorted.

    Raises:
        SourceError: The folder can't be listed.
    """
    return tuple(next(walk(_as_root(folder), Findings())).folders.values())


def splits_of(root: Path) -> tuple[str, ...]:
    """Says which sub-folders are the splits of a dataset, each to be packed by itself.

    They are, where one is named for training and another for validation or test, in any case, and
    no other could be a class.

    Returns:
        Their names, training first and test last; empty where the folder isn't split.

    Raises:
        SourceError: The folder can't be listed.
    """
    names = classes_of(root)
    found = [[name for name in names if name.lower() in split] for split in _SPLITS]
    train, others = found[0], [*found[1], *found[2]]
    if not train or not others or len(train) + len(others) != len(names):
        return ()
    return (*train, *others)


def _as_root(root: Path) -> bytes:
    return os.path.join(os.path.abspath(os.fsencode(root)), b"")  # noqa: PTH100, PTH118 - bytes


def _is_flat(root: bytes, top: Folder, classes: Sequence[str]) -> bool:
    if not top.folders:
        return True
    if not any(map(image_suffix_size, top.files)):
        return False
    beneath = (folder for folder in walk(root, Findings(), allowed=classes) if folder.path)
    return not any(image_suffix_size(name) for folder in beneath for name in folder.files)


def _settle(root: Path, top: Folder, classes: Sequence[str] | None) -> tuple[str, ...]:
    found = tuple(top.folders.values())
    if classes is None:
        return found
    wanted = frozenset(classes)
    unknown = [name for name in found if name not in wanted]
    if unknown:
        raise SourceError(
            f"{os.fspath(root)!r} holds the folder {unknown[0]!r}, which is none of the "
            f"{len(classes)} given classes ({len(unknown)} such folders); name it among the "
            "classes, or move it away",
            path=os.fspath(root),
        )
    return tuple(classes)


def _spool(
    folders: Iterable[Folder], classes: tuple[str, ...], spool: Path | None
) -> tuple[RowTable, RowTable, str]:
    numbers = {name: number for number, name in enumerate(classes)}
    digest = xxhash.xxh3_128(json.dumps(["folder", classes]).encode())
    with RowTableWriter(spool) as folder_rows, RowTableWriter(spool) as file_rows:
        position = 0
        for folder in folders:
            if not folder.files:
                continue
            label = numbers.get(folder.key.partition("/")[0], _UNLABELLED)
            row = _FOLDER.pack(label, len(folder.path)) + folder.path + folder.key.encode()
            cuts, escapes = distinct_keys(folder.files)
            heads = map(_FILE.pack, repeat(position), cuts, escapes)
            for part in (row, cuts, escapes, b"/".join(folder.files)):
                digest.update(len(part).to_bytes(8, "little"))
                digest.update(part)
            folder_rows.extend((row,))
            file_rows.extend(map(bytes.__add__, heads, folder.files))
            position += 1
        return folder_rows.finish(), file_rows.finish(), digest.hexdigest()
