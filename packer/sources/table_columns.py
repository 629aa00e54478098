"""Which column of somebody's table is what.

The image is a column that `datasets` describes as `Image`, or a struct with a field `bytes`, or a
binary column: `image`, another customary name, or the only one there is. The label is a column that
`datasets` describes as `ClassLabel`, or one of whole numbers or text with a customary name. Other
columns are extra fields; what JSON can't hold is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from packer.sources.contained import Found
from packer.sources.findings import Findings
from readers.errors import SourceError
from readers.huggingface import BYTES, METADATA, PATH
from readers.sample import JsonValue

_IMAGES = ("image", "img", "image_bytes", "jpg", "jpeg", "png", "webp", "bytes", "data")
_LABELS = ("label", "labels", "class", "cls", "fine_label", "category", "target")
_KEYS = ("key", "__key__")
_PATHS = ("path", "file_name", "filename", "image_path")
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table by what they are for."""

    image: str
    nested: bool
    """Whether the image is a struct with a field `bytes`."""
    names: tuple[str, ...]
    """Of the classes, in the order of their labels; empty where nothing says them."""
    label: str | None
    key: str | None
    path: str | None
    extras: tuple[str, ...]

    @property
    def leaf(self) -> str:
        """Path of the column of the images' bytes."""
        return f"{self.image}.{BYTES}" if self.nested else self.image

    @property
    def others(self) -> list[str]:
        """Paths of all that is read but the images."""
        inner = [f"{self.image}.{PATH}"] if self.nested else []
        named = [name for name in (self.label, self.key, self.path) if name is not None]
        return [*inner, *named, *self.extras]

    def found(self, row: Mapping[str, object], place: tuple[int, int]) -> Found:
        """Makes of a row, as Arrow gives it, what a look at a sample gives."""
        inner = row.get(self.image)
        name = inner.get(PATH) if isinstance(inner, dict) else None
        if not name and self.path is not None:
            name = row.get(self.path)
        key = None if self.key is None else row.get(self.key)
        label = None if self.label is None else row.get(self.label)
        return Found(
            place,
            key if isinstance(key, str) else None,
            name if isinstance(name, str) else None,
            None if label is None or label == -1 else str(label),
            {name: _plain(row.get(name)) for name in self.extras},
        )


def columns_of_table(schema: pa.Schema, file: Path, findings: Findings) -> TableColumns:
    """Finds out what the columns of a table are for.

    Raises:
        SourceError: None of them holds images.
    """
    described = _description(schema)
    types = {field.name: field.type for field in schema}
    image = _image(types, described)
    if image is None:
        shown = ", ".join(f"{name}: {kind}" for name, kind in [*types.items()][:_SHOWN])
        raise SourceError(f"{file}: no column holds images ({shown})", path=str(file))
    labels = [name for name, one in described.items() if one.get("_type") == "ClassLabel"]
    labels += [name for name in _LABELS if name in types and _is_label(types[name])]
    label = next((name for name in labels if name in types and name != image), None)
    texts = [name for name, kind in types.items() if _is_text(kind)]
    key = next((name for name in _KEYS if name in texts), None)
    path = next((name for name in _PATHS if name in texts), None)
    rest = [name for name in types if name not in {image, label, key, path}]
    extras = [name for name in rest if _is_plain(types[name])]
    for name in rest:
        if name not in extras:
            findings.note(file.name, f"column {name!r} of {types[name]}, left out")
    names = described.get(label or "", {}).get("names")
    classes = tuple(map(str, names)) if isinstance(names, list) else ()
    return TableColumns(
        image, pa.types.is_struct(types[image]), classes, label, key, path, tuple(extras)
    )


def _description(schema: pa.Schema) -> dict[str, dict[str, object]]:
    """Gives the features that `datasets` describes, by name; none where it says nothing."""
    text = (schema.metadata or {}).get(METADATA.encode(), b"")
    try:
        features = json.loads(text)["info"]["features"]
        return {name: one for name, one in features.items() if isinstance(one, dict)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _image(
    types: Mapping[str, pa.DataType], described: Mapping[str, Mapping[str, object]]
) -> str | None:
    usable = [name for name, kind in types.items() if _holds_bytes(kind)]
    images = [name for name in usable if described.get(name, {}).get("_type") == "Image"]
    customary = [name for name in _IMAGES if name in usable]
    alone = usable if len(usable) == 1 else []
    return next(iter((*images, *customary, *alone)), None)


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        at = kind.get_field_index(BYTES)
        return bool(at >= 0 and _holds_bytes(kind.field(at).type))
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_label(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind)) or _is_text(kind)


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_plain(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return bool(number) or _is_text(kind) or bool(pa.types.is_null(kind))


def _plain(value: object) -> JsonValue:
    """Gives a value of such a column as JSON has it; null for numbers that are none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    return value if isinstance(value, (bool, int, str)) else None
