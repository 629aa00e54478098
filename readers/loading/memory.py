"""Hands a batch from one process to another in memory that both map.

The memory has no name (`memfd_create`): it needs no room in /dev/shm, nothing of it stays behind
when a process is killed, and it is given back when the last array in it is.
"""

from __future__ import annotations

import mmap
import os
import pickle
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_LEAST = 1 << 16
"""Bytes from which on an array is worth memory of its own; smaller ones are pickled whole."""
_ALIGNMENT = 64
_LAST = -1

Place: TypeAlias = tuple[int, int, int]
"""Where a large array lies: which file, first byte, bytes."""
Message: TypeAlias = tuple[bytes, list[Place], int]
"""A pickled batch without its large arrays, where they lie, and how many files follow."""


class SharedOutput:
    """Arrays in memory that `send_batch` passes on without copying them."""

    def __init__(self) -> None:
        self._files: dict[int, int] = {}
        self._opened: list[int] = []

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any], /) -> NDArray[Any]:
        """Gives an array to be filled."""
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if nbytes < _LEAST or dtype.hasobject:
            return np.empty(shape, dtype)
        file, memory = self.make_file(nbytes)
        array: NDArray[Any] = np.frombuffer(memory, dtype).reshape(shape)
        self._files[array.ctypes.data] = file
        return array

    def make_file(self, nbytes: int) -> tuple[int, mmap.mmap]:
        """Gives memory with its file, which stays open until `forget`."""
        file = os.memfd_create("batch")
        self._opened.append(file)
        os.ftruncate(file, nbytes)
        return file, mmap.mmap(file, nbytes)

    def deliver(self, array: NDArray[Any], /) -> object:
        """Gives the array itself."""
        return array

    def file_of(self, part: memoryview) -> int | None:
        """Gives the file of an array by its bytes."""
        return self._files.get(np.frombuffer(part, np.uint8).ctypes.data)

    def forget(self) -> None:
        """Closes the files; who maps them keeps the memory."""
        for file in self._opened:
            os.close(file)
        self._opened.clear()
        self._files.clear()


def send_batch(connection: Connection, receiver: int, batch: object, output: SharedOutput) -> None:
    """Sends a batch.

    Args:
        connection: Where to.
        receiver: Process that reads at the other end.
        batch: Anything that can be pickled; its large arrays travel beside the pickle.
        output: Where arrays of the batch were allocated; others are copied once, into one file.
    """
    parts: list[memoryview] = []

    def keep_in(buffer: pickle.PickleBuffer) -> bool:
        part = buffer.raw()
        if part.nbytes >= _LEAST:
            parts.append(part)
        return part.nbytes < _LEAST

    pickled = pickle.dumps(batch, protocol=5, buffer_callback=keep_in)
    files: list[int] = []
    places: list[Place] = []
    end = 0
    for part in parts:
        if (file := output.file_of(part)) is None:
            places.append((_LAST, end, part.nbytes))
            end += -(-part.nbytes // _ALIGNMENT) * _ALIGNMENT
        else:
            places.append((len(files), 0, part.nbytes))
            files.append(file)
    if end:
        file, memory = output.make_file(end)
        files.append(file)
        for part, (number, start, nbytes) in zip(parts, places, strict=True):
            if number == _LAST:
                memory[start : start + nbytes] = part
    connection.send((pickled, places, len(files)))
    for file in files:
        reduction.send_handle(connection, file, receiver)


def receive_batch(connection: Connection, message: Message) -> object:
    """Gives the batch that `send_batch` sent.

    Args:
        connection: Where from.
        message: What was received of it.

    Returns:
        The batch; its large arrays lie in the memory that the sender filled.
    """
    pickled, places, count = message
    memory = [_map(reduction.recv_handle(connection)) for _ in range(count)]
    return pickle.loads(  # noqa: S301 - from a worker of our own
        pickled,
        buffers=[memory[number][start : start + nbytes] for number, start, nbytes in places],
    )


def _map(file: int) -> memoryview:
    try:
        return memoryview(mmap.mmap(file, 0))
    finally:
        os.close(file)
