"""Types of extra fields, found from their values: bool, int, float, string or json."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from readers.sample import JsonValue

_INT = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INT64 = 1 << 63


class FieldTypes:
    """Settles one type a field, from the types of its values.

    Values without a type are null. Whole numbers among others are numbers; any other mixture is
    `mixed`, and a field of nulls alone is a string.

    Args:
        mixed: Type of a field whose values have several.
    """

    def __init__(self, mixed: str) -> None:
        self._mixed = mixed
        self._types: dict[str, str | None] = {}

    def add(self, name: str, kind: str | None) -> None:
        """Takes the type of one value of a field into account."""
        known = self._types.setdefault(name, kind)
        if known is None:
            self._types[name] = kind
        elif kind is not None and kind != known:
            numbers = {known, kind} == {"int", "float"}
            self._types[name] = "float" if numbers else self._mixed

    def settle(self) -> Mapping[str, str]:
        """Gives the type of each field, in the order in which they turned up."""
        return {name: kind or "string" for name, kind in self._types.items()}


def type_of_value(value: JsonValue) -> str | None:
    """Gives the type of a value from JSON; None for null."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -_INT64 <= value < _INT64 else "json"
    if isinstance(value, float):
        return "float"
    return "string" if isinstance(value, str) else "json"


def type_of_cell(text: str) -> str | None:
    """Gives the type of a cell of a table; None for an empty one.

    `007` is a string, as it would lose its zeros; `nan` stands for a number that isn't there.
    """
    if not text:
        return None
    if _INT.fullmatch(text):
        return "int"
    is_number = _FLOAT.fullmatch(text) is not None and not _has_leading_zero(text)
    if text.lower() == "nan" or (is_number and math.isfinite(float(text))):
        return "float"
    return "string"


def value_of_cell(text: JsonValue, kind: str) -> JsonValue:
    """Turns a cell into a value of its field's type; null for an empty one."""
    if not isinstance(text, str) or not text:
        return None
    if kind == "int":
        return int(text)
    if kind == "float":
        return None if text.lower() == "nan" else float(text)
    return text


def value_as(value: JsonValue, kind: str) -> JsonValue:
    """Turns a value from JSON into one of its field's type."""
    return float(value) if kind == "float" and isinstance(value, int) else value


def _has_leading_zero(text: str) -> bool:
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
