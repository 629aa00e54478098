"""Renders FlatBuffers (https://flatbuffers.dev/internals), as far as Arrow's metadata needs them.

What is referred to comes after what refers to it. Every table has a vtable of its own, in front of
it. Alignment counts from the start of the buffer, which is to be placed at a multiple of 8.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number that lies in its table."""

    code: str
    """Its type, as `struct` names it."""
    value: int


@dataclass(frozen=True, slots=True)
class Structs:
    """A vector of structs, aligned to 8 bytes."""

    count: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Table:
    """A table: what its fields hold, by number; None where a field has its default."""

    fields: tuple[Field, ...]


Field: TypeAlias = "Scalar | Structs | Table | str | Sequence[Table] | None"

_ALIGNMENT = 8
_OFFSET_BYTES = 4


def render(root: Table) -> bytes:
    """Renders a buffer; its length is a multiple of 8."""
    out = bytearray(_OFFSET_BYTES)
    _refer(out, 0, _table(out, root))
    _align(out, 0)
    return bytes(out)


def _table(out: bytearray, table: Table) -> int:
    """Appends a table and what it refers to, and gives where it starts."""
    sizes = [
        0 if held is None else struct.calcsize(held.code) if isinstance(held, Scalar) else 4
        for held in table.fields
    ]
    places = [0] * len(sizes)
    end = _OFFSET_BYTES
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
        if sizes[number]:
            places[number] = end
            end += sizes[number]
    vtable = struct.pack(f"<HH{len(places)}H", 4 + 2 * len(places), end, *places)
    _align(out, _OFFSET_BYTES + len(vtable))
    start = len(out) + len(vtable)
    out += vtable + struct.pack("<i", len(vtable)) + bytes(end - _OFFSET_BYTES)
    for place, held in zip(places, table.fields, strict=True):
        at = start + place
        if isinstance(held, Scalar):
            struct.pack_into(f"<{held.code}", out, at, held.value)
        elif held is not None:
            _refer(out, at, _append(out, held))
    return start


def _append(out: bytearray, held: Structs | Table | str | Sequence[Table]) -> int:
    if isinstance(held, Table):
        return _table(out, held)
    if isinstance(held, Structs):
        _align(out, _OFFSET_BYTES)
        start = len(out)
        out += struct.pack("<I", held.count) + held.data
        return start
    _align(out, 0)
    start = len(out)
    if isinstance(held, str):
        text = held.encode()
        out += struct.pack("<I", len(text)) + text + b"\0"
        return start
    out += struct.pack("<I", len(held)) + bytes(_OFFSET_BYTES * len(held))
    for number, table in enumerate(held, 1):
        _refer(out, start + _OFFSET_BYTES * number, _table(out, table))
    return start


def _refer(out: bytearray, at: int, target: int) -> None:
    struct.pack_into("<I", out, at, target - at)


def _align(out: bytearray, ahead: int) -> None:
    """Pads so that what lies `ahead` bytes on is aligned."""
    out += bytes(-(len(out) + ahead) % _ALIGNMENT)
