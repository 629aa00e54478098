"""Chooses the kind of source by what lies at a path.

==============================================  ============================================
a folder of `.tar` files, at most with the       `TarSource`
files that tools write beside them
a folder with a manifest                         `PackedSource`
any other folder                                 `FolderSource`
a file `.csv`, `.tsv`, `.jsonl`, `.ndjson`       `ListSource`
a file `.tar`, or one with a tar header          `TarSource`
a file of Parquet, Arrow or TFRecord, or a       `ContainedSource`
folder of files of one of them
==============================================  ============================================

What a file is, its first bytes decide; a folder is one of shards by the suffixes in it.

A folder of splits never comes here as a whole (see `packer.sources.folder.splits_of`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from packer.protocols import PackSource
from packer.sources.contained import ContainedSource
from packer.sources.container_kinds import container_of, files_of, kind_of
from packer.sources.folder import FolderSource, classes_of
from packer.sources.list_rows import JSON_SUFFIXES, SEPARATORS, is_list
from packer.sources.listing import ListSource
from packer.sources.packed import PackedSource
from packer.sources.tar import TarSource
from readers.errors import DatasetNotFoundError, OptionError, SourceError
from readers.manifest import MANIFEST
from readers.opening import open_dataset

_SHOWN = 3


def open_source(
    path: Path,
    *,
    classes: Sequence[str] | None = None,
    root: Path | None = None,
    path_column: str | None = None,
    label_column: str | None = None,
    spool: Path | None = None,
) -> PackSource:
    """Opens what is to be packed.

    Args:
        path: A folder or a file.
        classes: Names of the classes in the order of their labels; None to take what is there.
        root: Folder that the paths of a list start from.
        path_column: Column of a list that holds the paths.
        label_column: Column of a list that holds the labels.
        spool: Directory for temporary files, which hold the listing; None for the system's.

    Raises:
        DatasetNotFoundError: Nothing is there.
        OptionError: A class is given twice, or an option for lists though it is none.
        SourceError: It isn't what it claims to be, of no known kind, or holds no files.
        StorageError: The listing can't be spooled.
    """
    if classes is not None and len(set(classes)) != len(classes):
        raise OptionError("a class is named twice among the given classes")
    if not os.path.lexists(path):
        raise DatasetNotFoundError(f"{path}: no such file or folder", path=os.fspath(path))
    if is_list(path) and path.is_file():
        source: PackSource = ListSource(
            path,
            root=root,
            path_column=path_column,
            label_column=label_column,
            classes=classes,
            spool=spool,
        )
    elif not (root is None and path_column is None and label_column is None):
        raise OptionError(
            f"{path}: a root and columns are for lists ({_list_suffixes()}), and this is none",
            path=os.fspath(path),
        )
    elif (path / MANIFEST).is_file():
        source = PackedSource(open_dataset(path))
    else:
        source = _open_images(path, classes, spool)
    if not len(source):
        raise SourceError(f"{path}: {_why_empty(path, source)}", path=os.fspath(path))
    return source


def _open_images(path: Path, classes: Sequence[str] | None, spool: Path | None) -> PackSource:
    try:
        kind = kind_of(path)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}", path=os.fspath(path)) from error
    if kind == "tar":
        return TarSource(path, classes=classes, spool=spool)
    if kind is not None:
        files, container = files_of(path, kind), container_of(kind)
        return ContainedSource(path, files, container, classes=classes, spool=spool)
    if not path.is_dir():
        raise SourceError(
            f"{path}: not a folder, a tar, Parquet, Arrow or TFRecord file, or a list "
            f"({_list_suffixes()})",
            path=os.fspath(path),
        )
    return FolderSource(path, classes=classes, spool=spool)


def _list_suffixes() -> str:
    return ", ".join((*SEPARATORS, *sorted(JSON_SUFFIXES)))


def _why_empty(path: Path, source: PackSource) -> str:
    found = "holds no samples"
    if source.kind == FolderSource.kind:
        found = "holds no files"
        if names := classes_of(path):
            shown = ", ".join(map(repr, names[:_SHOWN])) + (" …" if len(names) > _SHOWN else "")
            found = f"holds no files, only folders without any ({shown})"
    notes = [f"{note.path}: {note.reason}" for note in source.report.notes[:_SHOWN]]
    return "; ".join((found, *notes))
