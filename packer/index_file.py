"""Writes index.arrow from the rows of the finished shards, in bounded memory.

The file is to have one record batch, so every column is first put together in a file of its own,
which is then mapped and handed to Arrow where it lies.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from mmap import PROT_READ, mmap
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from packer.shard_file import ShardFile
from readers.checksum import BLOCK_SIZE
from readers.index import COLUMNS, SCHEMA
from readers.manifest import INDEX, File


def write_index(directory: Path, batches: Callable[[], Iterator[pa.RecordBatch]]) -> File:
    """Writes the index.

    Args:
        directory: Where `index.arrow` is made, and temporary files.
        batches: Gives all rows, in order; called once a column.

    Raises:
        OSError: The storage refuses.
    """
    with ExitStack() as stack:
        rows = sum(batch.num_rows for batch in batches())
        arrays = [
            _column(kind, rows, (batch.column(name) for batch in batches()), directory, stack)
            for name, kind in COLUMNS
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        sink = _Sink(ShardFile(directory / INDEX))
        try:
            with pa.PythonFile(sink, "w") as file, pa.ipc.new_file(file, SCHEMA) as writer:
                writer.write_batch(batch)
            return sink.file.finish()
        except OSError:
            sink.file.abandon()
            raise


class _Sink:
    """A `ShardFile` as Arrow wants a file to be."""

    closed = False

    def __init__(self, file: ShardFile) -> None:
        self.file = file

    def write(self, data: pa.Buffer) -> int:
        view = memoryview(data)
        for start in range(0, len(view), BLOCK_SIZE):
            self.file.append(bytes(view[start : start + BLOCK_SIZE]))
        return len(view)

    def tell(self) -> int:
        return self.file.size

    def flush(self) -> None:
        """Blocks are on their way already."""

    def close(self) -> None:
        self.closed = True


def _column(
    kind: pa.DataType, rows: int, parts: Iterator[pa.Array], spool: Path, stack: ExitStack
) -> pa.Array:
    data = stack.enter_context(tempfile.TemporaryFile(dir=spool))  # noqa: SIM115 - the stack closes it
    if not (pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)):
        for part in parts:
            width = kind.bit_width // 8
            start = part.offset * width
            data.write(memoryview(part.buffers()[1])[start : start + len(part) * width])
        return pa.Array.from_buffers(kind, rows, [None, _mapped(data)])
    offsets = stack.enter_context(tempfile.TemporaryFile(dir=spool))  # noqa: SIM115 - the stack closes it
    end = np.zeros(1, np.int64)
    offsets.write(end.tobytes())
    for part in parts:
        _, starts, text = part.buffers()
        ends = np.frombuffer(starts, np.int64)[part.offset : part.offset + len(part) + 1]
        if text is not None:
            data.write(memoryview(text)[ends[0] : ends[-1]])
        offsets.write((ends[1:] - ends[0] + end).tobytes())
        end += ends[-1] - ends[0]
    return pa.Array.from_buffers(kind, rows, [None, _mapped(offsets), _mapped(data)])


def _mapped(file: IO[bytes]) -> pa.Buffer:
    file.flush()
    size = file.tell()
    return pa.py_buffer(mmap(file.fileno(), size, prot=PROT_READ) if size else b"")
