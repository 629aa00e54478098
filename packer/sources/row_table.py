"""Rows of bytes that lie on disk, so that a listing of ten million files costs no memory."""

from __future__ import annotations

import errno
import mmap
import operator
import struct
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from typing_extensions import Self

from readers.errors import StorageError, StorageFullError

_SPAN = struct.Struct("=qq")
_END = struct.Struct("=q")


class RowTable:
    """A fixed sequence of rows in memory-mapped, nameless temporary files.

    Reading is safe from several threads. A negative index counts from the end.
    """

    def __init__(self, rows: bytes | mmap.mmap, ends: mmap.mmap) -> None:
        self._rows = rows
        self._ends = ends
        self._length = len(ends) // _END.size - 1

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> bytes:
        at = operator.index(index)
        if at < 0:
            at += self._length
        if not 0 <= at < self._length:
            raise IndexError(f"index {index} is out of range for {self._length} rows")
        start, end = _SPAN.unpack_from(self._ends, at * _END.size)
        return self._rows[start:end]

    def __iter__(self) -> Iterator[bytes]:
        return (self[index] for index in range(self._length))


class RowTableWriter:
    """Collects the rows of a `RowTable`; a context manager that gives its files back.

    Args:
        spool: Directory for the temporary files; None for the system's.
    """

    def __init__(self, spool: Path | None) -> None:
        self._spool = spool
        self._size = 0
        self._rows = self._open()
        self._ends = self._open()
        self._ends.write(_END.pack(0))

    def extend(self, rows: Iterable[bytes]) -> None:
        """Adds rows.

        Raises:
            StorageError: They can't be written; `StorageFullError` where no space is left.
        """
        rows = list(rows)
        ends = list(accumulate(map(len, rows), initial=self._size))
        self._size = ends[-1]
        try:
            self._rows.write(b"".join(rows))
            self._ends.write(struct.pack(f"={len(rows)}q", *ends[1:]))
        except OSError as error:
            raise self._refused(error) from error

    def finish(self) -> RowTable:
        """Maps what was collected; the table outlives the writer.

        Raises:
            StorageError: See `extend`.
        """
        try:
            self._rows.flush()
            self._ends.flush()
            ends = mmap.mmap(self._ends.fileno(), 0, access=mmap.ACCESS_READ)
            if not self._size:
                return RowTable(b"", ends)
            rows = mmap.mmap(self._rows.fileno(), 0, access=mmap.ACCESS_READ)
            return RowTable(rows, ends)
        except OSError as error:
            raise self._refused(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for file in (self._rows, self._ends):
            with suppress(OSError):  # what a full disk refuses to take is of no use any more
                file.close()

    def _open(self) -> BinaryIO:
        try:
            return tempfile.TemporaryFile(dir=self._spool)
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> StorageError | StorageFullError:
        place = self._spool or tempfile.gettempdir()
        kind = StorageFullError if error.errno in {errno.ENOSPC, errno.EDQUOT} else StorageError
        return kind(f"can't spool the listing in {place}: {error.strerror}", path=str(place))
