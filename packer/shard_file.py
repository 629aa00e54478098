"""Files of a shard: written in big blocks, checksummed on the way, flushed to the medium."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readers.checksum import BLOCK_SIZE, Buffer, digest_parts, file_checksum
from readers.manifest import File

_BLOCKS_IN_FLIGHT = 4
_BLOCKS_BETWEEN_SYNCS = 8
_BYTES_AT_ONCE = 1 << 17
_PARTS_AT_ONCE = 512
_SMALL = 4096


class ShardFile:
    """A new file whose first bytes are known last.

    A thread of its own checksums and writes the blocks; another flushes the file as it grows, so
    that the end of a big file isn't a long wait.

    Attributes:
        size: Bytes so far, head included.
    """

    def __init__(self, path: Path, head_bytes: int = 0) -> None:
        self.size = head_bytes
        self._path = path
        self._head_bytes = head_bytes
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="shard-writer")
        self._syncer = ThreadPoolExecutor(1, thread_name_prefix="shard-syncer")
        self._parts: list[Buffer] = [bytes(head_bytes)]
        self._small = bytearray()
        self._room = BLOCK_SIZE - head_bytes
        self._first: list[Buffer] | None = None
        self._blocks = 0
        self._flying: deque[Future[bytes]] = deque()
        self._syncing: Future[None] | None = None
        self._digests: list[bytes] = []

    def append(self, part: Buffer) -> None:
        """Adds bytes at the end. They must not change afterwards.

        Raises:
            OSError: An earlier block couldn't be written.
        """
        length = len(part)
        self.size += length
        if length < min(_SMALL, self._room):
            self._small += part
            self._room -= length
            return
        self._join_small()
        while length >= self._room:
            view = memoryview(part)
            self._parts.append(view[: self._room])
            part = view[self._room :]
            length -= self._room
            self._send()
        if length:
            self._parts.append(part)
            self._room -= length

    def finish(self, head: bytes = b"") -> File:
        """Writes the rest and the head, and flushes the file to the medium.

        Args:
            head: The first bytes of the file, as many as were left free.

        Raises:
            OSError: It can't be written.
            ValueError: The head has another size.
        """
        if len(head) != self._head_bytes:
            raise ValueError(f"a head of {len(head)} bytes, room for {self._head_bytes}")
        self._join_small()
        if self._parts:
            self._send()
        while self._flying:
            self._digests.append(self._flying.popleft().result())
        if self._first is not None:
            self._digests.insert(0, self._write([head, *self._first[1:]], 0))
        if self._syncing is not None:
            self._syncing.result()
        os.fsync(self._descriptor)
        self.abandon()
        return File(self._path.name, self.size, file_checksum(self._digests))

    def abandon(self) -> None:
        """Gives everything back; what was written stays, incomplete, under its temporary name."""
        self._writer.shutdown(cancel_futures=True)
        self._syncer.shutdown(cancel_futures=True)
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _join_small(self) -> None:
        """Makes one part of the small ones since the last; each costs as much as a big one."""
        if self._small:
            self._parts.append(bytes(self._small))
            self._small.clear()

    def _send(self) -> None:
        block = self._parts
        self._parts = []
        self._room = BLOCK_SIZE
        if self._first is None:
            self._first = block
        else:
            if len(self._flying) == _BLOCKS_IN_FLIGHT:
                self._digests.append(self._flying.popleft().result())
            self._flying.append(self._writer.submit(self._write, block, self._blocks * BLOCK_SIZE))
        self._blocks += 1
        if self._blocks % _BLOCKS_BETWEEN_SYNCS == 0:
            if self._syncing is not None:
                self._syncing.result()
            self._syncing = self._syncer.submit(os.fdatasync, self._descriptor)

    def _write(self, block: list[Buffer], offset: int) -> bytes:
        for parts, wanted in _pieces(block):
            written = os.pwritev(self._descriptor, parts, offset)
            if written < wanted:
                self._write_rest(memoryview(b"".join(parts))[written:], offset + written)
            offset += wanted
        return digest_parts(block)

    def _write_rest(self, rest: memoryview, offset: int) -> None:
        while rest:
            written = os.pwrite(self._descriptor, rest, offset)
            rest = rest[written:]
            offset += written


def _pieces(block: list[Buffer]) -> Iterator[tuple[list[Buffer], int]]:
    """Cuts a block into what is written at once, with its size.

    A page cache that is filled by small writes takes small pages that lie around, where one filled
    by megabytes asks for contiguous ones, which are dear on virtual machines.
    """
    parts: list[Buffer] = []
    size = 0
    for whole in block:
        for start in range(0, len(whole), _BYTES_AT_ONCE):
            part = memoryview(whole)[start : start + _BYTES_AT_ONCE]
            if parts and (size + len(part) > _BYTES_AT_ONCE or len(parts) == _PARTS_AT_ONCE):
                yield parts, size
                parts, size = [], 0
            parts.append(part)
            size += len(part)
    if parts:
        yield parts, size


def write_array(path: Path, head: bytes, values: NDArray[np.generic]) -> File:
    """Writes a head and an array's bytes, in C order, to a new file."""
    file = ShardFile(path, len(head))
    try:
        file.append(values.tobytes())
        return file.finish(head)
    except OSError:
        file.abandon()
        raise
