"""Which samples go where, in which order: a pure function of source and options."""

from __future__ import annotations

import importlib.metadata

import numpy as np
from numpy.typing import NDArray

from packer.image_policy import ImagePolicy, Keep, libraries_of
from readers.permutation import permutation
from readers.registry import FormatEntry
from readers.yuv import OPENCV, Color, opencv_version


def libraries(entry: FormatEntry, policy: ImagePolicy, color: Color) -> dict[str, str]:
    """Gives the versions of the libraries that the bytes depend on.

    Args:
        entry: The format.
        policy: What is done to the images.
        color: What pixels of the source are.
    """
    names = {*entry.shapes_bytes, *libraries_of(policy)}
    if color == "yuv420" and not isinstance(policy, Keep):
        names.add(OPENCV)
    return {
        name: opencv_version() if name == OPENCV else importlib.metadata.version(name)
        for name in sorted(names)
    }


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
