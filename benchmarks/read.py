"""How fast random batches are read from a warm page cache, against copying the same bytes.

The floor is `os.preadv` of the same extents of the same files: once into new memory for each batch,
which a reader needs that gives its samples away, and once into one buffer again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.contest import Contest, Goal
from benchmarks.cost import Cost, cost_of
from benchmarks.floor import Extents
from benchmarks.stock import STOCK_READERS, ReadBatch, read_files
from benchmarks.tree import Tree
from packer.bench import in_turns
from packer.convert import convert
from packer.image_policy import Decode
from packer.options import ConvertOptions
from packer.sources.opening import open_source
from readers.opening import open_dataset
from readers.registry import FORMATS

_BATCH, _BATCHES = 256, 2
_TURNS = 10
"""Turns a round: short ones, so that few are disturbed and medians pass over those."""
_SIDE = 256
_NEW, _REUSED = "preadv, new memory", "preadv, one buffer"
_READ, _FIRST, _VIEWS = "read_many", "read_many, first time (checksums)", "read_many, copy=False"
_FOLDER = "folder, open and read"
_FLOOR_GOAL, _VIEWS_GOAL = 0.9, 1.5


def read(tree: Tree, place: Path, *, rounds: int) -> Iterator[Contest]:
    """Packs the tree into each format and holds a contest on it."""
    for name, entry in FORMATS.items():
        path = place / f"read.{name}"
        image = None if entry.encoded else Decode(size=(_SIDE, _SIDE))
        options = ConvertOptions(image=image)
        convert(open_source(tree.root), path, format=name, options=options)
        yield _contest(tree, path, name, rounds * _TURNS)


def _contest(tree: Tree, path: Path, format: str, rounds: int) -> Contest:
    with ExitStack() as stack:
        dataset = stack.enter_context(open_dataset(path))
        views = stack.enter_context(open_dataset(path, copy=False))
        extents = stack.enter_context(Extents(dataset, _BATCH))
        random = np.random.default_rng(0)
        rows = random.integers(0, len(dataset), (rounds + 1, _BATCHES, _BATCH))
        for each in (dataset, views):
            each.read_many(np.arange(len(dataset)))
        openers: dict[str, _Opener] = {
            _REUSED: lambda: nullcontext(extents.into_one_buffer),
            _NEW: lambda: nullcontext(extents.into_new_memory),
            _READ: lambda: nullcontext(dataset.read_many),
            _FIRST: lambda: _opened(path),
            _VIEWS: lambda: nullcontext(views.read_many),
        }
        if FORMATS[format].encoded:
            from_folder = read_files(tree.root, dataset)
            openers[_FOLDER] = lambda: nullcontext(from_folder)
        if format in STOCK_READERS:
            name, opener = STOCK_READERS[format]
            stock = stack.enter_context(opener(dataset))
            openers[name] = lambda: nullcontext(stock)
        costs = in_turns({name: _turn(rows, opener) for name, opener in openers.items()}, rounds)
        nbytes = int(dataset.index.lengths[rows[1:]].sum()) // rounds
    return Contest(
        title=f"read {format}",
        cache="warm",
        samples=_BATCHES * _BATCH,
        nbytes=nbytes,
        costs=costs,
        baselines=(_NEW, _REUSED),
        goals=(
            *(Goal(_READ, "ratio", _FLOOR_GOAL, floor) for floor in (_NEW, _REUSED)),
            Goal(_VIEWS, "ratio", _VIEWS_GOAL, _REUSED),
        ),
        remarks=("copy=False gives views of the page cache: a byte is fetched when it is used",),
    )


_Opener = Callable[[], AbstractContextManager[ReadBatch]]


@contextmanager
def _opened(path: Path) -> Iterator[ReadBatch]:
    with open_dataset(path) as dataset:
        dataset.labels  # noqa: B018 - maps the index before the clock starts
        yield dataset.read_many


def _turn(rounds: NDArray[np.int64], opener: _Opener) -> Callable[[], Cost]:
    """Makes a contestant: in each turn it reads the batches of the next round."""
    remaining = iter(rounds)

    def turn() -> Cost:
        batches = next(remaining)
        with opener() as read_batch:
            return cost_of(lambda: _read(read_batch, batches))

    return turn


def _read(read_batch: ReadBatch, batches: NDArray[np.int64]) -> None:
    for batch in batches:
        read_batch(batch)
