"""Reads a dataset in random order, ten times, and prints the peak: `python -m benchmarks.epochs D`.

Also checks that memory of its own doesn't grow from the third epoch on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.peak import memory_of
from readers.opening import open_dataset

_EPOCHS, _BATCH = 10, 256
_SETTLED = 2
_GROWTH = 16 << 20


def main(path: Path) -> None:
    """Reads and reports."""
    random = np.random.default_rng(0)
    after = []
    with open_dataset(path) as dataset:
        for _ in range(_EPOCHS):
            order = random.permutation(len(dataset))
            for start in range(0, len(order), _BATCH):
                dataset.read_many(order[start : start + _BATCH])
            after.append(memory_of("RssAnon"))
    if max(after) - after[_SETTLED] > _GROWTH:
        sys.exit(f"memory grows from epoch to epoch: {after}")
    print(memory_of("VmHWM"), file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
