"""Which samples go where, in which order: a pure function of source and options."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from packer.image_policy import ImagePolicy, Keep
from packer.version import __version__
from readers.checksum import digest
from readers.manifest import VERSION
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
    names = {*entry.shapes_bytes, *(() if isinstance(policy, Keep) else ("pillow", "simplejpeg"))}
    return {name: importlib.metadata.version(name) for name in sorted(names)}


def packing_order(samples: int, seed: int | None) -> NDArray[np.int64]:
    """Gives the positions of the source's samples in the order in which they are packed.

    With a seed, they are sorted by a hash of seed and position (splitmix64, Steele, Lea and Flood,
    https://doi.org/10.1145/2660193.2660195), which is the same with every version of NumPy.

    Args:
        samples: Number of samples in the source.
        seed: 0 to 2**64 - 1; None for the source's order.

    Returns:
        int64, shape (samples,).
    """
    positions = np.arange(samples, dtype=np.int64)
    if seed is None:
        return positions
    with np.errstate(over="ignore"):
        hashed = _splitmix64(positions.astype(np.uint64) + _splitmix64(np.array([seed], np.uint64)))
    return np.argsort(hashed, kind="stable")


def _splitmix64(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed: NDArray[np.uint64] = state + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
