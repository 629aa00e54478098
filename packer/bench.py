"""What packing would gain: the same batches read from the folder and from each format, in turns.

`in_turns` and `sample_tree` serve `benchmarks/` too.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image as PillowImage

from packer.convert import convert
from packer.image_policy import Decode, ImagePolicy, Keep
from packer.options import ConvertOptions
from packer.progress import OnProgress
from packer.protocols import PackSource
from packer.verify import verify
from readers.decode import decode
from readers.errors import CorruptDatasetError
from readers.opening import open_dataset
from readers.protocols import Source, read_many
from readers.registry import FORMATS
from readers.sample import Image, Pixels

FOLDER = "folder"
"""Name of the contestant that reads the files as they lie."""
BATCH = 64
SIDE = 256
"""Height and width of decoded samples."""

_BATCHES_READ = 8
_BATCHES_DECODED = 1
_CLASSES = 10
_HEIGHT, _WIDTH = 375, 500
_QUALITY = 92
_CELLS = (5, 40)
_GRAIN = (30, 115)

Result = TypeVar("Result")


def in_turns(
    contestants: Mapping[str, Callable[[], Result]], rounds: int, *, warm_up: bool = True
) -> dict[str, list[Result]]:
    """Lets contestants take turns, so that what disturbs the machine disturbs all of them.

    Each round begins with another one, since who follows whom matters as well.

    Args:
        contestants: What each does in a turn.
        rounds: Turns of each.
        warm_up: Whether a round that doesn't count comes first.

    Returns:
        By contestant, the result of each round.
    """
    order = list(contestants)
    results: dict[str, list[Result]] = {name: [] for name in order}
    for number in range(-warm_up, rounds):
        for name in order:
            result = contestants[name]()
            if number >= 0:
                results[name].append(result)
        order.append(order.pop(0))
    return results


def sample_tree(root: Path, files: int) -> Iterator[Path]:
    """Makes JPEG files of some 110 kB, like photographs: smooth, with detail and noise.

    The pictures are the same every time.

    Args:
        root: Folder that is made, with class folders.
        files: How many.

    Yields:
        Each file when it is written.
    """
    classes = min(files, _CLASSES)
    for number in range(files):
        folder = root / f"class-{number % classes:02}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{number:06}.jpg"
        pixels = _picture(np.random.default_rng(number))
        path.write_bytes(simplejpeg.encode_jpeg(pixels, quality=_QUALITY, colorsubsampling="420"))
        yield path


def _picture(random: np.random.Generator) -> Pixels:
    """Adds up a coarse and a finer pattern of colours, and grain."""
    total = np.zeros((_HEIGHT, _WIDTH, 3), np.uint16)
    for cells in _CELLS:
        pattern = PillowImage.fromarray(random.integers(0, 256, (cells, cells, 3), np.uint8))
        total += np.asarray(pattern.resize((_WIDTH, _HEIGHT), PillowImage.Resampling.BILINEAR))
    grain = random.integers(0, random.integers(*_GRAIN), (_HEIGHT, _WIDTH, 1), np.uint8)
    return (total // len(_CELLS)).astype(np.uint8) // 2 + grain
