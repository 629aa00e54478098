"""Packs a tree with h5py into a dataset of variable-length rows, as is customary.

Command: `python -m benchmarks.peers.h5py_vlen TREE OUT`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np


def main(tree: Path, out: Path) -> None:
    """Packs the tree."""
    paths = sorted(tree.glob("*/*"))
    classes = {path.name: label for label, path in enumerate(sorted(tree.iterdir()))}
    with h5py.File(out, "w") as file:
        images = file.create_dataset("image", (len(paths),), h5py.vlen_dtype(np.uint8))
        for row, path in enumerate(paths):
            images[row] = np.frombuffer(path.read_bytes(), np.uint8)
        file["label"] = np.array([classes[path.parent.name] for path in paths], np.int32)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
