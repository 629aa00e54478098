"""Columns that grow on disk, so that what is known of a million samples costs little memory."""

from __future__ import annotations

import tempfile
from array import array
from contextlib import suppress
from mmap import PROT_READ, mmap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


class Spool:
    """A column of byte strings in an unnamed temporary file: first appended, then read.

    Attributes:
        data: All strings, one after the other, memory-mapped, once they are frozen.
    """

    def __init__(self, directory: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=directory, buffering=1 << 16)  # noqa: SIM115 - closed by close()
        self._ends = array("q", [0])
        self.data = memoryview(b"")

    def __len__(self) -> int:
        return len(self._ends) - 1

    @property
    def size(self) -> int:
        """Bytes of all strings."""
        return self._ends[-1]

    def append(self, text: bytes) -> None:
        """Adds a string."""
        self._file.write(text)
        self._ends.append(self._ends[-1] + len(text))

    def freeze(self) -> None:
        """Ends the appending; from now on the strings can be read."""
        self._file.flush()
        if self.size:
            self.data = memoryview(mmap(self._file.fileno(), self.size, prot=PROT_READ))

    def __getitem__(self, row: int) -> bytes:
        return bytes(self.data[self._ends[row] : self._ends[row + 1]])

    def offsets(self) -> NDArray[np.int64]:
        """Gives where the strings start and end: int64, shape (strings + 1,)."""
        return np.array(self._ends, np.int64)

    def close(self) -> None:
        """Gives the file back."""
        with suppress(OSError):  # what a full disk refuses to take is of no use any more
            self._file.close()
