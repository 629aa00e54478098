"""A sample as a row of the columns of `readers.huggingface`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from packer.columns import Column, columns_of, storable_text
from packer.protocols import Contents, Record
from readers.huggingface import TableColumn, description, table_columns

Cell: TypeAlias = bool | int | float | bytes | None
"""A value as it is stored; text as UTF-8."""

_FIXED_BYTES = 8
"""Bytes of a value of a fixed size, or of where a text ends."""


class Row(NamedTuple):
    """All of a sample but its image."""

    path: bytes
    """Text of `image.path`, UTF-8."""
    cells: tuple[Cell, ...]
    """Of the columns beside the image, in their order."""
    nbytes: int
    """Bytes that it takes, with the image, about."""


class TableSchema:
    """The columns of a dataset.

    Attributes:
        columns: Those beside the image.
        description: What `datasets` finds in the schema's metadata.
    """

    def __init__(self, contents: Contents) -> None:
        self.columns: tuple[TableColumn, ...] = table_columns(contents.classes, contents.fields)
        self.description = description(contents.classes, self.columns)
        self._labelled = contents.labelled
        self._extras: tuple[Column, ...] = columns_of(contents.fields)

    def row(self, record: Record) -> Row:
        """Makes the row of a record.

        Raises:
            SampleError: A value isn't of its field's type.
        """
        cells: list[Cell] = [record.label] if self._labelled else []
        cells.append(record.key.encode())
        for column in self._extras:
            value = column.value(record)
            cells.append(value.encode() if isinstance(value, str) else value)
        path = record.path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        name = storable_text(path).encode()
        texts = sum(len(cell) for cell in cells if isinstance(cell, bytes))
        fixed = _FIXED_BYTES * (2 + len(cells))
        return Row(name, tuple(cells), len(record.image) + len(name) + texts + fixed)


def by_column(rows: Sequence[Row], columns: int) -> list[list[Cell]]:
    """Turns rows into columns."""
    return [[row.cells[number] for row in rows] for number in range(columns)]
