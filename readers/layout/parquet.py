"""Parquet: images as Hugging Face `datasets` has them, each contiguous and as it is.

Source: https://parquet.apache.org/docs/file-format and `parquet.thrift` of Apache Parquet. The
metadata are structs of Thrift's compact protocol, see `readers.thrift`.

::

    file       "PAR1", row groups, offset indexes, footer, its length u32, "PAR1"
    row group  a column chunk after the other: image.bytes, image.path, then the other columns
    page       header, definition levels (their length u32, then runs), values
    values     PLAIN: text and bytes as length u32 and bytes, numbers of 8 bytes little-endian,
               bool as bits from the lowest on; nulls take nothing

The columns are those of `readers.huggingface`, all of them optional; only labels and extra fields
have nulls. No column is compressed or has a dictionary. A row group ends where the bytes of its
samples would exceed 16 MiB, and after 65,536 samples: to read one sample costs no tool more than
that. The images of a row group lie in pages of 1 MiB, or of one image; each other column in one
page. The offset index of every column chunk says where its pages are and with which rows they
begin, so a tool that heeds it reads one page for one image.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from readers import thrift
from readers.huggingface import BYTES, IMAGE, METADATA, PATH, TableColumn
from readers.thrift import Long, Struct, varint

SUFFIX = ".parquet"
MAGIC = b"PAR1"
GROUP_BYTES = 16 << 20
"""Bytes of samples after which a row group ends."""
GROUP_ROWS = 1 << 16
"""Samples after which a row group ends."""
PAGE_BYTES = 1 << 20
"""Bytes of images after which a page ends."""
MAX_IMAGE = (1 << 31) - (1 << 20)
"""Bytes of the largest image: sizes of pages have 31 bits, less room for what goes with it."""
LENGTH_BYTES = 4
"""Bytes before each text or image."""

_CREATED_BY = b"dataset-packer version 1"
_FORMAT_VERSION = 2
_BOOLEAN, _INT64, _DOUBLE, _BYTE_ARRAY = 0, 2, 5, 6
_PLAIN, _RLE = 0, 3
_OPTIONAL = 1
_UTF8 = 0
_DATA_PAGE = 0
_UNCOMPRESSED = 0

_PHYSICAL = {"bool": _BOOLEAN, "float64": _DOUBLE, "int64": _INT64, "string": _BYTE_ARRAY}
_length = struct.Struct("<I")


class Leaf(NamedTuple):
    """A column as Parquet has it."""

    path: tuple[str, ...]
    type: str
    """`bytes`, or a type of `TableColumn`."""


class Page(NamedTuple):
    """Where a page lies."""

    offset: int
    size: int
    """Bytes with its header."""
    row: int
    """Number of its first row in the row group."""


class Chunk(NamedTuple):
    """A column of a row group."""

    pages: tuple[Page, ...]

    @property
    def size(self) -> int:
        """Bytes of its pages."""
        return sum(page.size for page in self.pages)


class Group(NamedTuple):
    """A row group."""

    rows: int
    chunks: tuple[Chunk, ...]
    """In the order of the leaves."""


def leaves(columns: Sequence[TableColumn]) -> tuple[Leaf, ...]:
    """Gives all columns in order, the parts of the image first."""
    image = (Leaf((IMAGE, BYTES), "bytes"), Leaf((IMAGE, PATH), "string"))
    return (*image, *(Leaf((column.name,), column.type) for column in columns))


def page_head(leaf: Leaf, present: Sequence[bool] | int, values: int) -> bytes:
    """Renders what comes before the values of a page.

    Args:
        leaf: The column.
        present: Which rows have a value; or how many rows, if all have one.
        values: Bytes of the values.
    """
    rows = present if isinstance(present, int) else len(present)
    levels = _levels(present, len(leaf.path))
    size = _length.size + len(levels) + values
    data_page = thrift.struct({1: rows, 2: _PLAIN, 3: _RLE, 4: _RLE})
    header = thrift.struct({1: _DATA_PAGE, 2: size, 3: size, 5: data_page})
    return header.data + _length.pack(len(levels)) + levels


def length_prefix(size: int) -> bytes:
    """Renders what comes before a text or an image of so many bytes."""
    return _length.pack(size)


def offset_index(chunk: Chunk) -> bytes:
    """Renders the offset index of a column chunk."""
    places = [
        thrift.struct({1: Long(page.offset), 2: page.size, 3: Long(page.row)})
        for page in chunk.pages
    ]
    return thrift.struct({1: places}).data


def footer(
    columns: Sequence[TableColumn],
    description: str,
    groups: Sequence[Group],
    indexes: Sequence[Sequence[tuple[int, int]]],
) -> bytes:
    """Renders all that follows the offset indexes.

    Args:
        columns: Those beside the image.
        description: What stands under `huggingface` in the metadata.
        groups: The row groups.
        indexes: Offset and size of the offset index of each chunk of each group.
    """
    held = leaves(columns)
    metadata = thrift.struct(
        {
            1: _FORMAT_VERSION,
            2: _schema(columns),
            3: Long(sum(group.rows for group in groups)),
            4: [_group(group, held, places) for group, places in zip(groups, indexes, strict=True)],
            5: [thrift.struct({1: METADATA.encode(), 2: description.encode()})],
            6: _CREATED_BY,
        }
    ).data
    return metadata + _length.pack(len(metadata)) + MAGIC


def _schema(columns: Sequence[TableColumn]) -> list[Struct]:
    root = thrift.struct({4: b"schema", 5: 1 + len(columns)})
    image = thrift.struct({3: _OPTIONAL, 4: IMAGE.encode(), 5: 2})
    data = thrift.struct({1: _BYTE_ARRAY, 3: _OPTIONAL, 4: BYTES.encode()})
    path = _element(TableColumn(PATH, "string"))
    return [root, image, data, path, *map(_element, columns)]


def _element(column: TableColumn) -> Struct:
    fields: dict[int, thrift.Value] = {
        1: _PHYSICAL[column.type],
        3: _OPTIONAL,
        4: column.name.encode(),
    }
    if column.type == "string":
        empty = thrift.struct({})
        fields |= {6: _UTF8, 10: thrift.struct({1: empty})}
    return thrift.struct(fields)


def _group(group: Group, held: Sequence[Leaf], places: Sequence[tuple[int, int]]) -> Struct:
    size = sum(chunk.size for chunk in group.chunks)
    columns = [
        _chunk(leaf, chunk, group.rows, place)
        for leaf, chunk, place in zip(held, group.chunks, places, strict=True)
    ]
    start = group.chunks[0].pages[0].offset
    return thrift.struct(
        {
            1: columns,
            2: Long(size),
            3: Long(group.rows),
            5: Long(start),
            6: Long(size),
        }
    )


def _chunk(leaf: Leaf, chunk: Chunk, rows: int, place: tuple[int, int]) -> Struct:
    start = chunk.pages[0].offset
    metadata = thrift.struct(
        {
            1: _PHYSICAL.get(leaf.type, _BYTE_ARRAY),
            2: [_PLAIN, _RLE],
            3: [part.encode() for part in leaf.path],
            4: _UNCOMPRESSED,
            5: Long(rows),
            6: Long(chunk.size),
            7: Long(chunk.size),
            9: Long(start),
        }
    )
    return thrift.struct({2: Long(start), 3: metadata, 4: Long(place[0]), 5: place[1]})


def _levels(present: Sequence[bool] | int, full: int) -> bytes:
    """Renders definition levels: of full columns a run of `full`, of others a bit a row."""
    if isinstance(present, int):
        return varint(present << 1) + bytes((full,))
    bits = np.packbits(np.array(present, np.bool_), bitorder="little").tobytes()
    return varint(len(bits) << 1 | 1) + bits
