"""The rows of a list of images: CSV, TSV or JSON lines.

CSV and TSV follow RFC 4180 (quotes, line ends within quotes) and start with a line of column
names; JSON lines hold one object each. Text is UTF-8, with or without a byte order mark; other
bytes are kept in paths and refused elsewhere.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn, TextIO

from readers.errors import SourceError
from readers.sample import JsonValue

SEPARATORS: Mapping[str, str] = {".csv": ",", ".tsv": "\t"}
"""Separator of the cells of a table by the list's suffix."""
JSON_SUFFIXES = frozenset((".jsonl", ".ndjson"))
"""Suffixes of lists that are JSON lines."""

_PATH_COLUMNS = (
    *("path", "file", "filename", "file_name", "filepath", "file_path"),
    *("image", "image_path", "image_file", "image_name", "imagepath", "img", "img_path"),
)
_LABEL_COLUMNS = ("label", "class", "class_name", "classname", "category", "target", "label_name")


class Row(NamedTuple):
    """What a list says of one image."""

    line: int
    """Number of the line that it ends on, from 1."""
    path: str
    label: str | None
    """None where the cell is empty."""
    extra: dict[str, JsonValue]
    """Further columns; cells of a table as text, None where empty."""


class _Columns(NamedTuple):
    path: str
    label: str | None


def is_list(file: Path) -> bool:
    """Says whether a file is a list by its suffix."""
    return file.suffix.lower() in SEPARATORS or file.suffix.lower() in JSON_SUFFIXES


def list_rows(
    file: Path, *, path_column: str | None = None, label_column: str | None = None
) -> Iterator[Row]:
    """Reads a list row by row.

    Args:
        file: The list; its suffix says what it is.
        path_column: Column of the paths; None for the first that is named like one.
        label_column: Column of the labels; None for the first that is named like one, if any.

    Raises:
        SourceError: It can't be read, lacks a column, or a line is malformed; the line is named.
    """
    try:
        with file.open("rb") as stream:
            if stream.peek(2)[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}:
                raise SourceError(f"{file}: is UTF-16; save it as UTF-8", path=str(file))
        separator = SEPARATORS.get(file.suffix.lower())
        if separator is None:
            with file.open("rb") as stream:
                yield from _json_rows(file, stream, path_column, label_column)
        else:
            with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
                yield from _table_rows(file, text, separator, path_column, label_column)
    except OSError as error:
        raise SourceError(f"{file}: can't be read: {error.strerror}", path=str(file)) from error


def refuse(file: Path, line: int, what: str) -> NoReturn:
    """Raises the error for a line of a list."""
    raise SourceError(f"{file}, line {line}: {what}", path=str(file))


def _table_rows(
    file: Path,
    stream: TextIO,
    separator: str,
    path_column: str | None,
    label_column: str | None,
) -> Iterator[Row]:
    reader = csv.reader(stream, delimiter=separator, strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        columns = _choose(file, names, path_column, label_column)
        if len(set(names)) != len(names):
            refuse(file, 1, f"two columns have the same name: {names}")
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(names):
                refuse(
                    file, reader.line_num, f"has {len(cells)} cells, the header {len(names)} names"
                )
            extra: dict[str, JsonValue] = dict(zip(names, cells, strict=True))
            path = str(extra.pop(columns.path))
            label = None if columns.label is None else str(extra.pop(columns.label))
            extra.pop("", None)  # the row numbers that pandas writes
            yield Row(reader.line_num, path, label, extra)
    except csv.Error as error:
        refuse(file, reader.line_num, str(error))


def _json_rows(
    file: Path, stream: BinaryIO, path_column: str | None, label_column: str | None
) -> Iterator[Row]:
    columns: _Columns | None = None
    for number, line in enumerate(stream, 1):
        text = line.removeprefix(codecs.BOM_UTF8 if number == 1 else b"")
        if not text.strip():
            continue
        extra = _json_object(file, number, text.decode("utf-8", "surrogateescape"))
        if columns is None:
            columns = _choose(file, tuple(extra), path_column, label_column)
        path = extra.pop(columns.path, None)
        if not isinstance(path, str):
            refuse(file, number, f"{columns.path!r} is no path but {path!r}")
        label = None
        if columns.label is not None:
            label = _json_label(file, number, extra.pop(columns.label, None))
        elif found := _find(tuple(extra), _LABEL_COLUMNS):
            refuse(file, number, f"has {found!r}, which the lines before it lack")
        yield Row(number, path, label, extra)


def _json_object(file: Path, line: int, text: str) -> dict[str, JsonValue]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        refuse(file, line, f"is no JSON: {error}")
    if not isinstance(value, dict):
        refuse(file, line, f"is no JSON object but {text[:40]!r}")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _json_label(file: Path, line: int, value: JsonValue) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        refuse(file, line, f"the label is neither a name nor a whole number: {value!r}")
    return str(value)


def _choose(
    file: Path, names: Sequence[str], path_column: str | None, label_column: str | None
) -> _Columns:
    path = _find(names, _PATH_COLUMNS if path_column is None else (path_column,))
    if path is None:
        wanted = "named like one (path, file, image …)" if path_column is None else path_column
        raise SourceError(
            f"{file}: no column of paths {wanted!r} among its columns {list(names)}; choose one "
            "with `--path-column` (the first line must name the columns)",
            path=str(file),
        )
    label = _find(names, _LABEL_COLUMNS if label_column is None else (label_column,))
    if label is None and label_column is not None:
        raise SourceError(
            f"{file}: no column {label_column!r} among its columns {list(names)}; choose another "
            "with `--label-column`",
            path=str(file),
        )
    return _Columns(path, None if label == path else label)


def _find(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    """Finds the first wanted name, as it is written; by any case where none matches exactly."""
    folded = {name.lower(): name for name in reversed(names)}
    for name in wanted:
        if name in names:
            return name
    return next((folded[name.lower()] for name in wanted if name.lower() in folded), None)
