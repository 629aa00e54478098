"""Packs a tree with `webdataset.TarWriter`, as its manual shows.

Command: `python -m benchmarks.peers.webdataset_writer TREE OUT`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import webdataset


def main(tree: Path, out: Path) -> None:
    """Packs the tree."""
    classes = {path.name: label for label, path in enumerate(sorted(tree.iterdir()))}
    with webdataset.TarWriter(str(out)) as writer:
        for path in sorted(tree.glob("*/*")):
            key = f"{path.parent.name}/{path.stem}"
            label = classes[path.parent.name]
            writer.write({"__key__": key, "jpg": path.read_bytes(), "cls": label})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
