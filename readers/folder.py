"""A dataset's directory, held open so that all its files are of one run."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from readers.errors import CorruptDatasetError, DatasetNotFoundError, StorageError
from readers.manifest import File
from readers.storage import Storage, storage_beneath

_PIECE = 1 << 20


class Folder:
    """An open directory.

    Files are opened relative to it, so a dataset that is replaced under the same path meanwhile is
    never mixed with the one that was opened.

    Attributes:
        path: Where it was found.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise DatasetNotFoundError(
                f"{path}: {'no such directory' if not path.exists() else 'not a directory'}; "
                "a dataset is a directory that 'packer convert' made",
                path=str(path),
            ) from error
        except OSError as error:
            raise StorageError(
                f"{path} can't be opened: {error.strerror}", path=str(path)
            ) from error

    def storage(self) -> Storage:
        """Says what the directory lies on."""
        return storage_beneath(self._descriptor)

    def open(self, file: File) -> int:
        """Opens a file of the dataset and holds its size against the manifest's.

        Returns:
            A descriptor that the caller closes.

        Raises:
            CorruptDatasetError: The file is missing or of another size.
            StorageError: It can't be opened.
        """
        path = self.path / file.name
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(file.name, flags, dir_fd=self._descriptor)
        except FileNotFoundError as error:
            raise CorruptDatasetError(
                f"{path} is missing; restore it or pack the dataset again",
                path=str(path),
                shard=file.name,
            ) from error
        except OSError as error:
            raise StorageError(
                f"{path} can't be opened: {error.strerror}", path=str(path)
            ) from error
        found = os.fstat(descriptor).st_size
        if found != file.bytes:
            os.close(descriptor)
            raise CorruptDatasetError(
                f"{path} has {found} bytes, not the {file.bytes} that the manifest says; "
                "restore it or pack the dataset again",
                path=str(path),
                shard=file.name,
                offset=min(found, file.bytes),
            )
        return descriptor

    def map(self, file: File) -> memoryview:
        """Maps a file of the dataset read-only; the mapping lives as long as a view of it.

        Raises:
            CorruptDatasetError: The file is missing or of another size.
            StorageError: It can't be opened or mapped.
        """
        descriptor = self.open(file)
        try:
            if not file.bytes:
                return memoryview(b"")
            # Arrow's mapping outlives its descriptor; Python's own keeps one as long as it lives.
            with pa.memory_map(f"/proc/self/fd/{descriptor}") as mapped:
                return memoryview(mapped.read_buffer()).cast("B")
        except OSError as error:
            raise StorageError(
                f"{self.path / file.name} can't be memory-mapped: {error.strerror}",
                path=str(self.path / file.name),
            ) from error
        finally:
            os.close(descriptor)

    def read(self, name: str) -> bytes:
        """Reads a small file whole.

        Raises:
            FileNotFoundError: It isn't there.
            StorageError: It can't be read.
        """
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._descriptor)
            try:
                return b"".join(iter(lambda: os.read(descriptor, _PIECE), b""))
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StorageError(
                f"{self.path / name} can't be read: {error.strerror}", path=str(self.path / name)
            ) from error

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
