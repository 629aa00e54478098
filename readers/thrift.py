"""Renders Thrift's compact protocol, as far as Parquet's metadata needs it.

Source: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_SHORT_LIST = 15


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct, rendered."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Long:
    """An integer of 64 bits; a plain one has 32."""

    value: int


Value: TypeAlias = (
    "int | Long | bytes | Struct | Sequence[int] | Sequence[bytes] | Sequence[Struct]"
)


def struct(fields: dict[int, Value]) -> Struct:
    """Renders a struct of the fields by number, which ascend."""
    out = bytearray()
    last = 0
    for number, value in fields.items():
        kind, data = _render(value)
        out += bytes(((number - last) << 4 | kind,)) + data
        last = number
    return Struct(bytes(out) + b"\0")


def varint(value: int) -> bytes:
    """Renders an unsigned integer, seven bits a byte."""
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _render(value: Value) -> tuple[int, bytes]:
    if isinstance(value, int):
        return _I32, _zigzag(value)
    if isinstance(value, Long):
        return _I64, _zigzag(value.value)
    if isinstance(value, bytes):
        return _BINARY, varint(len(value)) + value
    if isinstance(value, Struct):
        return _STRUCT, value.data
    rendered = [_render(one) for one in value]
    kind = rendered[0][0] if rendered else _STRUCT
    size = len(rendered)
    head = bytes((min(size, _SHORT_LIST) << 4 | kind,))
    if size >= _SHORT_LIST:
        head += varint(size)
    return _LIST, head + b"".join(data for _, data in rendered)


def _zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)
