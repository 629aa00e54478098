"""Arrow: an IPC file a shard, images as Hugging Face `datasets` has them.

Source: https://arrow.apache.org/docs/format/Columnar.html, and `Schema.fbs`, `Message.fbs` and
`File.fbs` of Arrow (metadata version 5). Everything is little-endian and aligned to 8 bytes.

::

    file       "ARROW1", two zeros, schema message, record batches, end of stream (0xffffffff, 0),
               footer, its length i32, "ARROW1"
    message    0xffffffff, length of the metadata i32, metadata, then the body
    body       per column, in order: validity bits, then values; or int32 offsets, then data

The columns are those of `readers.huggingface`; all may be null, though only extra fields and labels
are. A column without nulls in a batch has no validity bits there. Images are one after the other in
the data of `image.bytes`, so each is contiguous. A new record batch begins where the bytes of the
samples would exceed 16 MiB, and after 65,536 samples, so no 32-bit offset overflows: a batch with
more holds a single image. Nothing is compressed, and there are no dictionaries.

The dataset's own `index.arrow` lies beside the shards and is a table of its own: give other tools
`shard-*.arrow`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from readers.flatbuffers import Scalar, Structs, Table, render
from readers.huggingface import BYTES, IMAGE, METADATA, PATH, TableColumn

SUFFIX = ".arrow"
HEAD = b"ARROW1\0\0"
BATCH_BYTES = 16 << 20
"""Bytes of samples after which a record batch ends."""
BATCH_ROWS = 1 << 16
"""Samples after which a record batch ends."""
MAX_IMAGE = (1 << 31) - (1 << 20)
"""Bytes of the largest image: 32-bit offsets, less room for its texts."""

_MAGIC = b"ARROW1"
_CONTINUATION = b"\xff\xff\xff\xff"
_END_OF_STREAM = _CONTINUATION + bytes(4)
_VERSION = 4
_SCHEMA, _RECORD_BATCH = 1, 3
_INT, _FLOAT, _BINARY, _UTF8, _BOOL, _STRUCT = 2, 3, 4, 5, 6, 13
_DOUBLE = 2
_ALIGNMENT = 8

_TYPES = {
    "bool": (_BOOL, Table(())),
    "float64": (_FLOAT, Table((Scalar("h", _DOUBLE),))),
    "int64": (_INT, Table((Scalar("i", 64), Scalar("?", 1)))),
    "string": (_UTF8, Table(())),
}


class Block(NamedTuple):
    """Where a record batch lies."""

    offset: int
    metadata: int
    """Bytes of the message without its body."""
    body: int
    """Bytes of its body."""


class Node(NamedTuple):
    """A column of a record batch, or the struct around two."""

    rows: int
    nulls: int


def schema(columns: Sequence[TableColumn], description: str) -> Table:
    """Describes the columns.

    Args:
        columns: Those beside the image.
        description: What stands under `huggingface` in the metadata.
    """
    parts = (_field(BYTES, _BINARY, Table(())), _field(PATH, _UTF8, Table(())))
    image = _field(IMAGE, _STRUCT, Table(()), parts)
    fields = [image, *(_field(column.name, *_TYPES[column.type]) for column in columns)]
    return Table((None, fields, [Table((METADATA, description))]))


def schema_message(described: Table) -> bytes:
    """Renders the message with which a file begins, after `HEAD`."""
    return _message(_SCHEMA, described, 0)


def batch_message(nodes: Sequence[Node], sizes: Sequence[int]) -> tuple[bytes, int]:
    """Renders what comes before the body of a record batch.

    Args:
        nodes: The columns, struct and parts each one.
        sizes: Bytes of the buffers of the body; each is padded, see `padding`.

    Returns:
        The message, and the bytes of the body.
    """
    places = bytearray()
    end = 0
    for size in sizes:
        places += struct.pack("<qq", end, size)
        end += size + len(padding(size))
    batch = Table(
        (
            Scalar("q", nodes[0].rows),
            Structs(len(nodes), b"".join(struct.pack("<qq", *node) for node in nodes)),
            Structs(len(sizes), bytes(places)),
        )
    )
    return _message(_RECORD_BATCH, batch, end), end


def footer(described: Table, blocks: Sequence[Block]) -> bytes:
    """Renders all that follows the last record batch."""
    places = b"".join(struct.pack("<qi4xq", *block) for block in blocks)
    table = Table((Scalar("h", _VERSION), described, Structs(0, b""), Structs(len(blocks), places)))
    rendered = render(table)
    return _END_OF_STREAM + rendered + struct.pack("<i", len(rendered)) + _MAGIC


def padding(size: int) -> bytes:
    """Gives the zeros that follow a buffer of so many bytes."""
    return bytes(-size % _ALIGNMENT)


def _field(name: str, kind: int, type_: Table, children: Sequence[Table] = ()) -> Table:
    return Table((name, Scalar("?", 1), Scalar("B", kind), type_, None, children))


def _message(kind: int, header: Table, body: int) -> bytes:
    table = Table((Scalar("h", _VERSION), Scalar("B", kind), header, Scalar("q", body)))
    metadata = render(table)
    return _CONTINUATION + struct.pack("<i", len(metadata)) + metadata
