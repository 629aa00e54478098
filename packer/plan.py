"""Which samples go where, in which order: a pure function of source and options."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from packer.image_policy import ImagePolicy, keeps_pixels
from packer.version import __version__
from readers.checksum import digest
from readers.manifest import VERSION
from readers.permutation import permutation
from readers.registry import FormatEntry
from readers.sample import JsonValue


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


def libraries(entry: FormatEntry, policy: ImagePolicy) -> dict[str, str]:
    """Gives the versions of the libraries that the bytes depend on."""
    names = {*entry.shapes_bytes, *(() if keeps_pixels(policy) else ("pillow", "simplejpeg"))}
    return {name: importlib.metadata.version(name) for name in sorted(names)}


def packing_order(samples: int, seed: int | None) -> NDArray[np.int64]:
    """Gives the positions of the source's samples in the order in which they are packed.

    With a seed, they are sorted by `readers.permutation`.

    Args:
        samples: Number of samples in the source.
        seed: 0 to 2**64 - 1; None for the source's order.

    Returns:
        int64, shape (samples,).
    """
    if seed is None:
        return np.arange(samples, dtype=np.int64)
    return permutation(samples, seed)
