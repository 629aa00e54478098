"""Names what a dataset was made of, and how."""

from __future__ import annotations

import json
from collections.abc import Mapping

from readers.checksum import digest
from readers.manifest import VERSION
from readers.registry import FormatEntry
from readers.sample import JsonValue
from readers.version import __version__


def fingerprint(
    entry: FormatEntry,
    source: str,
    options: Mapping[str, JsonValue],
    libraries: Mapping[str, str],
) -> str:
    """Names a plan: equal for equal sources, options and versions, which give equal bytes."""
    plan: dict[str, object] = {
        "format": entry.name,
        "version": entry.version,
        "manifest": VERSION,
        "packer": __version__,
        "source": source,
        "options": options,
        "libraries": libraries,
    }
    return digest(json.dumps(plan, sort_keys=True).encode()).hex()
