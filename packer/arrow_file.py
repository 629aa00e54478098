"""Writes index.arrow and segments.arrow from the rows of the finished shards, in bounded memory.

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
from readers.manifest import File


def write_arrow(
    path: Path, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]]
) -> File:
    """Writes an Arrow IPC file of one record batch.

    Args:
        path: The file; temporary ones are made beside it.
        schema: Its columns: numbers, large binaries, large strings, large lists of numbers.
        batches: Gives all rows, in order; called once a column.

    Raises:
        OSError: The storage refuses.
    """
    with ExitStack() as stack:
        rows = sum(batch.num_rows for batch in batches())
        arrays = [
            _column(field, rows, (batch.column(field.name) for batch in batches()), path, stack)
            for field in schema
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        sink = _Sink(ShardFile(path))
        try:
            with pa.PythonFile(sink, "w") as file, pa.ipc.new_file(file, schema) as writer:
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
    field: pa.Field, rows: int, parts: Iterator[pa.Array], path: Path, stack: ExitStack
) -> pa.Array:
    kind, spool = field.type, path.parent
    data = stack.enter_context(tempfile.TemporaryFile(dir=spool))  # noqa: SIM115 - the stack closes it
    is_list = pa.types.is_large_list(kind)
    if not (is_list or pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)):
        for part in parts:
            width = kind.bit_width // 8
            start = part.offset * width
            data.write(memoryview(part.buffers()[1])[start : start + len(part) * width])
        return pa.Array.from_buffers(kind, rows, [None, _mapped(data)])
    offsets = stack.enter_context(tempfile.TemporaryFile(dir=spool))  # noqa: SIM115 - the stack closes it
    end = np.zeros(1, np.int64)
    offsets.write(end.tobytes())
    width = kind.value_type.bit_width // 8 if is_list else 1
    for part in parts:
        buffers = part.buffers()
        starts, items = buffers[1], buffers[-1]
        ends = np.frombuffer(starts, np.int64)[part.offset : part.offset + len(part) + 1]
        if items is not None:
            data.write(memoryview(items)[ends[0] * width : ends[-1] * width])
        offsets.write((ends[1:] - ends[0] + end).tobytes())
        end += ends[-1] - ends[0]
    if is_list:
        items = pa.Array.from_buffers(kind.value_type, end.item(), [None, _mapped(data)])
        return pa.Array.from_buffers(kind, rows, [None, _mapped(offsets)], children=[items])
    return pa.Array.from_buffers(kind, rows, [None, _mapped(offsets), _mapped(data)])


def _mapped(file: IO[bytes]) -> pa.Buffer:
    file.flush()
    size = file.tell()
    return pa.py_buffer(mmap(file.fileno(), size, prot=PROT_READ) if size else b"")
