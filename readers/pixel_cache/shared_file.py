"""A file of fixed size that several processes fill."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from readers.errors import StorageError


class SharedFile:
    """Reads by memory map and writes by `pwrite`, so that a full disk is an error, not a signal.

    Attributes:
        view: All bytes; shows what other processes write.
    """

    def __init__(self, path: Path, size: int, *, writable: bool) -> None:
        """Opens a file.

        Raises:
            StorageError: It has another size.
            OSError: It can't be opened.
        """
        flags = os.O_RDWR if writable else os.O_RDONLY
        self._descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
        found = os.fstat(self._descriptor).st_size
        if found != size:
            raise StorageError(
                f"{path} has {found} bytes, not {size}: remove {path.parent}, it is made again",
                path=str(path),
            )
        self.view = memoryview(mmap.mmap(self._descriptor, size, prot=mmap.PROT_READ))

    def write(self, data: memoryview, offset: int) -> None:
        """Writes bytes at a place.

        Raises:
            OSError: The storage refuses.
        """
        while data:
            written = os.pwrite(self._descriptor, data, offset)
            data = data[written:]
            offset += written

    def sync(self) -> None:
        """Flushes the file to the medium."""
        os.fsync(self._descriptor)

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)
