"""How fast pixels are packed, against decoding and resizing alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import simplejpeg
from PIL import Image

from benchmarks.contest import Contest, Goal
from benchmarks.cost import PACKER, Cost, cost_of, cost_of_command
from benchmarks.disk import flush, remove
from benchmarks.tree import Tree, part_of
from packer.bench import in_turns
from packer.engines.local import worker_count
from readers.registry import FORMATS

_SIDE = 256
_FILES = 8000
_ALONE = 1000
"""Files that the bare loop decodes; its cost is scaled to all."""
_ONE = "bare, one thread, times the cores"
_ALL = "bare, a thread a core"
_GOAL = 0.9


def decode(tree: Tree, place: Path, *, rounds: int) -> Iterator[Contest]:
    """Holds the contest on a part of the tree that is enough for steady rates."""
    part = part_of(tree, place, min(_FILES, len(tree.paths)))
    output = place / "decoded"
    cores = worker_count(0)
    alone = part.paths[:: max(1, len(part.paths) // _ALONE)]
    factor = len(part.paths) / len(alone)
    images = [path.read_bytes() for path in alone]

    def turn(format: str) -> Cost:
        flush()
        options = ("--image", "decode", "--size", str(_SIDE), "--format", format, "-q")
        try:
            return cost_of_command((*PACKER, "convert", str(part.root), str(output), *options))
        finally:
            remove(output)

    formats = [name for name, entry in FORMATS.items() if entry.pixels]
    contestants: dict[str, Callable[[], Cost]] = {
        _ONE: lambda: _bare(images, 1).times(factor, at_once=cores),
        _ALL: lambda: _bare(images, cores).times(factor),
    }
    contestants |= {_packer(name): partial(turn, name) for name in formats}
    yield Contest(
        title=f"decode to {_SIDE} x {_SIDE}",
        cache="warm",
        samples=len(part.paths),
        nbytes=part.nbytes,
        costs=in_turns(contestants, rounds),
        baselines=(_ONE, _ALL),
        goals=tuple(Goal(_packer(name), "ratio", _GOAL, _ONE) for name in formats),
        remarks=("the bare loop has all files in memory already and stores nothing",),
    )


def _packer(format: str) -> str:
    return f"packer, {format}"


def _bare(images: Sequence[bytes], threads: int) -> Cost:
    with ThreadPoolExecutor(threads) as pool:
        return cost_of(lambda: sum(pool.map(_decoded_size, images)))


def _decoded_size(image: bytes) -> int:
    """Decodes an image and resizes the middle square of it."""
    pixels = simplejpeg.decode_jpeg(image)
    height, width = pixels.shape[:2]
    side = min(height, width)
    left, top = (width - side) / 2, (height - side) / 2
    square = Image.fromarray(pixels).resize(
        (_SIDE, _SIDE), Image.Resampling.BICUBIC, (left, top, left + side, top + side)
    )
    return int(np.asarray(square).nbytes)
