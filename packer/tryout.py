"""Tries whether a destination can do what packing needs, before a run begins there."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from readers.durable import sync_directory
from readers.errors import StorageError
from readers.storage import storage_of

_BLOCK = 64 << 10
_ROOM = 1 << 20


def try_out(directory: Path) -> None:
    """Does in small what a run does: nothing on storage that is known to be able to.

    Mounts of buckets, above all, are file systems by name: some take no second write to a place,
    some can't rename a directory, and they say so only when a run of hours comes to its end.

    Raises:
        StorageError: The storage can't; the message says what, and what to do instead.
    """
    storage = storage_of(directory)
    if storage.kind in ("local", "memory"):
        return
    need = "make a directory"
    try:
        with TemporaryDirectory(
            dir=directory, prefix="tryout.", ignore_cleanup_errors=True
        ) as place:
            for need, attempt in _NEEDS.items():  # noqa: B007 - the last one is told
                attempt(Path(place))
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{directory.parent} lies on {storage.describe()}, which can't {need} ({error}): "
            "pack into a local directory, then copy the finished dataset there",
            path=str(directory),
        ) from error


def _make_exclusively(place: Path) -> None:
    path = place / "claim"
    path.open("xb").close()
    try:
        path.open("xb").close()
    except FileExistsError:
        return
    raise ValueError("it makes the same file twice")


def _write_start_last(place: Path) -> None:
    path = place / "shard"
    blocks = [os.urandom(_BLOCK) for _ in range(3)]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        for number in (1, 2, 0):
            os.pwrite(descriptor, blocks[number], number * _BLOCK)
            os.fdatasync(descriptor)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if path.read_bytes() != b"".join(blocks):
        raise ValueError("it gives back other bytes")


def _map(place: Path) -> None:
    path = place / "shard"
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        if mapped[:] != path.read_bytes():
            raise ValueError("it maps other bytes")


def _keep_without_a_name(place: Path) -> None:
    with TemporaryFile(dir=place) as stream:
        stream.write(b"spool")
        stream.flush()
        with mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            if mapped[:] != b"spool":
                raise ValueError("it gives back other bytes")


def _leave_room(place: Path) -> None:
    with (place / "twin").open("wb") as stream:
        stream.truncate(_ROOM)
        stream.seek(_ROOM)
        stream.write(b"end")
    if (place / "twin").stat().st_size != _ROOM + len(b"end"):
        raise ValueError("the file has another size")


def _rename_directory(place: Path) -> None:
    before, after = place / "before", place / "after"
    before.mkdir()
    (before / "file").write_bytes(b"content")
    sync_directory(before)
    before.rename(after)
    if (after / "file").read_bytes() != b"content":
        raise ValueError("it gives back other bytes")


_NEEDS: dict[str, Callable[[Path], None]] = {
    "make a file only where there is none": _make_exclusively,
    "write the first block of a file last": _write_start_last,
    "map a file into memory": _map,
    "keep a file that was removed while it is open": _keep_without_a_name,
    "make a file with room in it": _leave_room,
    "rename a directory": _rename_directory,
}
"""What every format's shards, or the workspace, come to need."""
