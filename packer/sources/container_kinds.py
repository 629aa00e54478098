"""Which kind of container a file is, by its first bytes, or a folder, by the suffixes in it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

from packer.sources.contained import Container
from readers.errors import MissingDependencyError, SourceError
from readers.registry import format_entry, load

_BESIDE_SHARDS = frozenset(
    (".idx", ".index", ".json", ".lock", ".md", ".tfindex", ".txt", ".yaml", ".yml")
)
"""Suffixes of what tools write beside shards; beside tars they write `.parquet` too."""
_SUFFIXES = {
    ".arrow": "arrow",
    ".feather": "arrow",
    ".parquet": "parquet",
    ".tar": "tar",
    ".tfrec": "tfrecord",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
}
_CONTAINERS = {
    "arrow": "packer.sources.tables:arrow_container",
    "parquet": "packer.sources.tables:parquet_container",
    "tfrecord": "packer.sources.tfrecord:TfrecordContainer",
}
_TFRECORD_START = "packer.sources.tfrecord:begins_like_one"
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
_STARTS = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
"""First bytes of kinds; the last is how a stream of Arrow begins."""
_TAR_MAGIC_AT = slice(257, 262)
_NUMBERED = re.compile(r"(.*?)-\d{5,}-of-\d{5,}(.*)", re.DOTALL)


def kind_of(path: Path) -> str | None:
    """Tells what a file or a folder is: `arrow`, `parquet`, `tar`, `tfrecord`; None for others.

    Raises:
        OSError: It can't be read.
        SourceError: It is compressed as a whole, or neither a file nor a folder.
    """
    return _kind_of_folder(path) if path.is_dir() else _kind_of_file(path)


def _kind_of_folder(path: Path) -> str | None:
    kinds: set[str] = set()
    with os.scandir(path) as entries:
        for entry in entries:
            file = Path(entry.path)
            if entry.name.startswith("."):
                continue
            if not entry.is_file():
                return None
            kind = _kind_by_name(file)
            if kind is not None:
                kinds.add(kind)
            elif _suffix(file) not in _BESIDE_SHARDS:
                return None
    if "tar" in kinds:
        kinds.discard("parquet")
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_file(path: Path) -> str | None:
    if path.exists() and not path.is_file():
        raise SourceError(f"{path}: neither a file nor a folder", path=os.fspath(path))
    with path.open("rb") as stream:
        head = stream.read(_TAR_MAGIC_AT.stop)
    for magic, packed in _PACKED.items():
        if head.startswith(magic):
            raise SourceError(
                f"{path}: compressed with {packed}; unpack it first", path=os.fspath(path)
            )
    for magic, kind in _STARTS.items():
        if head.startswith(magic):
            return kind
    if head[_TAR_MAGIC_AT] == b"ustar":
        return "tar"
    return _SUFFIXES.get(_suffix(path)) or ("tfrecord" if _is_tfrecord(head) else None)


def files_of(path: Path, kind: str) -> tuple[Path, ...]:
    """Gives the files of a kind at a path, in the order of their names.

    Raises:
        SourceError: They are of several splits, by their names.
    """
    if not path.is_dir():
        return (path,)
    listed = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    files = [file for file in listed if _kind_by_name(file) == kind]
    sets = sorted({match[1] for file in files if (match := _NUMBERED.fullmatch(file.name))})
    if len(sets) > 1:
        raise SourceError(
            f"{path}: holds the sets {', '.join(map(repr, sets))}, by the names of its files; put "
            "each into a folder of its own",
            path=os.fspath(path),
        )
    return tuple(files)


def container_of(kind: str) -> Container:
    """Makes what reads files of a kind.

    Raises:
        MissingDependencyError: The library that it needs isn't installed.
    """
    return cast("Callable[[], Container]", load(format_entry(kind), _CONTAINERS[kind]))()


def _suffix(file: Path) -> str:
    """Gives the suffix of a name in lower case, without what numbers it."""
    match = _NUMBERED.fullmatch(file.name)
    return Path(match[1] + match[2] if match else file.name).suffix.lower()


def _kind_by_name(file: Path) -> str | None:
    """Goes by the suffix; a numbered file without one is looked into."""
    suffix = _suffix(file)
    if not suffix and _NUMBERED.fullmatch(file.name):
        return _kind_of_file(file)
    return _SUFFIXES.get(suffix)


def _is_tfrecord(head: bytes) -> bool:
    try:
        begins = load(format_entry("tfrecord"), _TFRECORD_START)
    except MissingDependencyError:
        return False
    return cast("Callable[[bytes], bool]", begins)(head)
