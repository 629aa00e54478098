"""Pictures of 4000 x 3000 pixels, made of the photographs of a tree."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image

from benchmarks.tree import Tree, open_tree

_HEIGHT, _WIDTH = 3000, 4000
_ACROSS = 4
_QUALITY = 90


def make_large(tree: Tree, root: Path, count: int) -> Tree:
    """Makes pictures of four by four photographs, each enlarged to 1000 x 750.

    Enlarged about twice, they are about as sharp at the level of pixels as a telephone's.
    """
    step = max(1, len(tree.paths) // (count * _ACROSS**2))
    photographs = tree.paths[::step]

    def make(number: int) -> None:
        start = number * _ACROSS**2
        chosen = [photographs[(start + at) % len(photographs)] for at in range(_ACROSS**2)]
        path = root / f"class-{number % 10}" / f"{number:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        _mosaic(chosen).save(path, quality=_QUALITY, subsampling="4:2:0")

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(make, range(count)))
    return open_tree(root)


def _mosaic(photographs: Sequence[Path]) -> Image.Image:
    picture = Image.new("RGB", (_WIDTH, _HEIGHT))
    width, height = _WIDTH // _ACROSS, _HEIGHT // _ACROSS
    for place, path in enumerate(photographs):
        with Image.open(path) as photograph:
            part = photograph.convert("RGB").resize((width, height), Image.Resampling.BICUBIC)
        picture.paste(part, (place % _ACROSS * width, place // _ACROSS * height))
    return picture
