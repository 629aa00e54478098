"""Reads extents (file, offset, length) of a dataset's files."""

from __future__ import annotations

import os
import resource
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from readers.errors import CorruptDatasetError, StorageError
from readers.folder import Folder
from readers.manifest import File


def read_extent(descriptor: int, offset: int, length: int) -> bytes:
    """Reads bytes of a file; fewer where it ends.

    One call gives 2 GiB at most on Linux, and less on some network mounts, so it goes on.
    """
    data = os.pread(descriptor, length, offset)
    if len(data) == length:
        return data
    parts = [data]
    done = len(data)
    while parts[-1] and done < length:
        parts.append(os.pread(descriptor, length - done, offset + done))
        done += len(parts[-1])
    return b"".join(parts)


class CopiedFile:
    """Reads by `pread`: each extent is a `bytes` of its own.

    A file that is cut while it is read gives an error rather than a signal. The descriptor carries
    no position, so threads and forked processes share it.
    """

    def __init__(self, folder: Folder, file: File) -> None:
        self.descriptor = folder.open(file)
        self._path = folder.path / file.name

    def read(self, offset: int, length: int, /) -> bytes:
        """Reads one extent that lies within the file.

        Raises:
            CorruptDatasetError: The file ends before.
            StorageError: The storage refuses.
        """
        try:
            data = read_extent(self.descriptor, offset, length)
        except OSError as error:
            raise self._refused(offset, error) from error
        if len(data) < length:
            raise self._cut(offset, length, len(data))
        return data

    def read_array(self, offset: int, length: int, /) -> NDArray[np.uint8]:
        """Reads one extent into an array of its own, which may be written to; raises likewise."""
        data = np.empty(length, np.uint8)
        try:
            done = os.preadv(self.descriptor, [data.data], offset)
        except OSError as error:
            raise self._refused(offset, error) from error
        if done < length:
            data[done:] = np.frombuffer(self.read(offset + done, length - done), np.uint8)
        return data

    def _refused(self, offset: int, error: OSError) -> StorageError:
        return StorageError(
            f"{self._path} can't be read at byte {offset}: {error.strerror}; see to the storage",
            path=str(self._path),
            shard=self._path.name,
            offset=offset,
        )

    def _cut(self, offset: int, length: int, done: int) -> CorruptDatasetError:
        return CorruptDatasetError(
            f"{self._path} was cut: {length} bytes at {offset} end after {done}; "
            "restore the shard or pack the dataset again",
            path=str(self._path),
            shard=self._path.name,
            offset=offset + done,
        )

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)


class MappedFile:
    """Reads by memory map: each extent is a view of the page cache, valid as long as it lives."""

    def __init__(self, folder: Folder, file: File) -> None:
        self._view = folder.map(file)
        self.descriptor = folder.open(file)

    def read(self, offset: int, length: int, /) -> memoryview:
        """Gives a view of one extent that lies within the file."""
        return self._view[offset : offset + length]

    def read_array(self, offset: int, length: int, /) -> NDArray[np.uint8]:
        """Gives a view of one extent as an array, which may not be written to."""
        return np.frombuffer(self._view, np.uint8, length, offset)

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)


OpenFile = TypeVar("OpenFile", CopiedFile, MappedFile)


_READAHEADS = {"random": "POSIX_FADV_RANDOM", "sequential": "POSIX_FADV_SEQUENTIAL"}


class OpenFiles(Generic[OpenFile]):
    """The files that are open: a bounded number, the one opened first is let go first.

    A file that was let go lives on as long as a read or a view needs it. There is no lock that a
    fork could leave locked: of two threads that open one file at once, the later one's stays.
    """

    def __init__(
        self,
        folder: Folder,
        files: tuple[File, ...],
        kind: type[OpenFile],
        readahead: str = "normal",
    ) -> None:
        self._folder = folder
        self._advice: int | None = getattr(os, _READAHEADS.get(readahead, ""), None)
        self._files = files
        self._kind: type[OpenFile] = kind
        self._open: dict[int, OpenFile] = {}
        self._limit = _open_limit()

    def __getitem__(self, number: int) -> OpenFile:
        file = self._open.get(number)
        if file is None:
            file = self._open[number] = self._kind(self._folder, self._files[number])
            if self._advice is not None:
                os.posix_fadvise(file.descriptor, 0, 0, self._advice)
            for first in tuple(self._open)[: -self._limit]:
                self._open.pop(first, None)
        return file


def _open_limit() -> int:
    """Takes an eighth of the descriptors that the process may open, 4 to 256: threads hold more."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 256 if soft == resource.RLIM_INFINITY else max(4, min(256, soft // 8))
