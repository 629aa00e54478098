r"""The columns of a table of images, as Hugging Face `datasets` has them.

Source: https://huggingface.co/docs/datasets/about_dataset_features, and `Features` in the sources
of `datasets`, which finds its description as JSON under `huggingface` in the schema's metadata.

============  ======================  ==============================================================
`image`       struct<bytes: binary,   the file's bytes, and its path in the source (bytes that are
              path: string>           no UTF-8 written as `\xNN`); the feature `Image`
`label`       int64                   the feature `ClassLabel` with the names of the classes, null
                                      without a label; in datasets with labels only
`key`         string                  the sample's key
extra fields  bool, int64, double,    under their own names, `field/NAME` where that is one of the
              string                  above or begins with `field/`; `json` is a string of its text
============  ======================  ==============================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

IMAGE, LABEL, KEY = "image", "label", "key"
BYTES, PATH = "bytes", "path"
METADATA = "huggingface"

_TYPES = {"bool": "bool", "int": "int64", "float": "float64", "string": "string", "json": "string"}


class TableColumn(NamedTuple):
    """A column beside the image."""

    name: str
    type: str
    """`bool`, `int64`, `float64` or `string`."""


def table_columns(classes: Sequence[str], fields: Mapping[str, str]) -> tuple[TableColumn, ...]:
    """Gives the columns beside the image, in order.

    Args:
        classes: Names of the classes; none in a dataset without labels.
        fields: Type of each extra field, as the manifest has them.
    """
    label = (TableColumn(LABEL, "int64"),) if classes else ()
    extras = (TableColumn(_column_name(name), _TYPES[kind]) for name, kind in fields.items())
    return (*label, TableColumn(KEY, "string"), *extras)


def description(classes: Sequence[str], columns: Iterable[TableColumn]) -> str:
    """Renders the features as `datasets` finds them in the schema's metadata."""
    features: dict[str, object] = {IMAGE: {"_type": "Image"}}
    for column in columns:
        features[column.name] = (
            {"names": list(classes), "_type": "ClassLabel"}
            if column.name == LABEL
            else {"dtype": column.type, "_type": "Value"}
        )
    return json.dumps({"info": {"features": features}})


def _column_name(field: str) -> str:
    taken = field in {IMAGE, LABEL, KEY} or field.startswith("field/")
    return f"field/{field}" if taken else field
