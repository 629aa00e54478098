"""One image file of a source, read whole."""

from __future__ import annotations

import errno
import os
import stat

from packer.sources.keys import image_suffix_size
from readers.errors import NotAnImageError, SampleError, StorageError
from readers.header import image_type

MAX_SIZE = 1 << 30
"""Bytes of the largest file that is taken for an image."""

_SNIFFED_FIRST = 1 << 20
_HEAD_SIZE = 4096
_SHOWN = 16
_NOT_ITS_FAULT = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))
# A FIFO that took a file's place must not block the open, nor a terminal become ours.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def read_image_file(file: bytes, path: str, key: str) -> bytes:
    """Reads an image file.

    Args:
        file: The file, as the system takes it.
        path: Its path within the source, for messages and for what its suffix claims.
        key: Key of the sample, for messages.

    Raises:
        NotAnImageError: It is no image by its content, and claims none by its suffix.
        SampleError: It is larger than `MAX_SIZE`, no regular file, changes, or can't be read.
        StorageError: The process or the machine has no room for another open file.
    """
    try:
        handle = os.open(file, _FLAGS)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise SampleError(f"{path}: no regular file", path=path, key=key)
            if status.st_size > _SNIFFED_FIRST:
                refuse_other_files(os.pread(handle, _HEAD_SIZE, 0), path, key)
            if status.st_size > MAX_SIZE:
                raise SampleError(
                    f"{path}: {status.st_size} bytes, more than the {MAX_SIZE} of an image",
                    path=path,
                    key=key,
                )
            data = _read(handle, status.st_size)
        finally:
            os.close(handle)
    except OSError as error:
        kind = StorageError if error.errno in _NOT_ITS_FAULT else SampleError
        raise kind(f"{path}: {error.strerror} ({os.fsdecode(file)})", path=path, key=key) from error
    if len(data) != status.st_size:
        raise SampleError(f"{path}: changed while it was read", path=path, key=key)
    refuse_other_files(data, path, key)
    return data


def stamp_of(file: bytes) -> bytes:
    """Gives what changes when a file does: its size and when it was last written to."""
    try:
        status = os.stat(file)  # noqa: PTH116 - bytes
    except OSError:
        return b""
    return b"%d %d" % (status.st_size, status.st_mtime_ns)


def refuse_other_files(data: bytes, path: str, key: str) -> None:
    """Refuses what neither is an image nor claims to be one by its suffix.

    Raises:
        NotAnImageError: It is such a file.
    """
    if image_type(data) != "unknown":
        return
    if image_suffix_size(path.encode("utf-8", "surrogateescape")) > 0:
        return
    facts = f"no image: starts with {data[:_SHOWN]!r}" if data else "empty file"
    raise NotAnImageError(f"{path}: {facts}", path=path, key=key)


def _read(handle: int, size: int) -> bytes:
    """Reads a file and, where it has grown, one byte more than its size."""
    # One byte more than the size, so that one call both reads all and sees the end.
    data = os.read(handle, size + 1)
    return data if len(data) >= size else _read_on(handle, data, size)


def _read_on(handle: int, data: bytes, size: int) -> bytes:
    pieces = [data]
    missing = size + 1 - len(data)
    while missing and (piece := os.read(handle, missing)):
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)
