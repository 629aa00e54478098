"""Extra fields as columns: what the formats that have types of their own store of each value.

The types are those of the manifest. A value that its field's type can't hold never came from one of
our sources; it is an error rather than a value that is silently changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from packer.protocols import Record
from readers.errors import SampleError

_INT64 = 1 << 63

Scalar = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Column:
    """An extra field."""

    name: str
    kind: str
    """`bool`, `int`, `float`, `string` or `json`."""

    def value(self, record: Record) -> Scalar | None:
        """Gives what is stored of a record: of `json` its text, of text what is valid as UTF-8.

        Raises:
            SampleError: The value isn't of the field's type.
        """
        value = record.extra.get(self.name)
        if self.kind == "json":
            return json.dumps(value) if self.name in record.extra else None
        if value is None:
            return None
        if self.kind == "string" and isinstance(value, str):
            return storable_text(value)
        if self.kind == "bool" and isinstance(value, bool):
            return value
        if not isinstance(value, bool):
            if self.kind == "int" and isinstance(value, int) and -_INT64 <= value < _INT64:
                return value
            if self.kind == "float" and isinstance(value, (int, float)):
                return float(value)
        raise SampleError(
            f"{record.path}: the field {self.name!r} is declared as {self.kind} and holds "
            f"{value!r}",
            path=record.path,
            key=record.key,
        )


def columns_of(fields: Mapping[str, str]) -> tuple[Column, ...]:
    """Gives the extra fields, in their order."""
    return tuple(Column(name, kind) for name, kind in fields.items())


def storable_text(text: str) -> str:
    """Gives a text as UTF-8 can hold it, with lone surrogates written out as escapes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def check_size(record: Record, largest: int) -> None:
    """Refuses an image that is too large for a format.

    Raises:
        SampleError: It is.
    """
    if len(record.image) > largest:
        raise SampleError(
            f"{record.path}: {len(record.image)} bytes, the format holds images of up to {largest}",
            path=record.path,
            key=record.key,
        )
