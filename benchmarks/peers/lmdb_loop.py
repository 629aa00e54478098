"""Packs a tree with py-lmdb as its users do: `put` in a loop, a commit every thousand.

Command: `python -m benchmarks.peers.lmdb_loop TREE OUT`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import lmdb

_MAP_SIZE = 1 << 40
_COMMIT_EVERY = 1000


def main(tree: Path, out: Path) -> None:
    """Packs the tree."""
    environment = lmdb.open(str(out), map_size=_MAP_SIZE, subdir=True)
    transaction = environment.begin(write=True)
    for number, path in enumerate(sorted(tree.glob("*/*")), 1):
        transaction.put(str(path.relative_to(tree)).encode(), path.read_bytes())
        if number % _COMMIT_EVERY == 0:
            transaction.commit()
            transaction = environment.begin(write=True)
    transaction.commit()
    environment.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
