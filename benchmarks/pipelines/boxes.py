"""Boxes and flips of random crops, for pipelines whose library draws none."""

from __future__ import annotations

import math
from random import Random

from benchmarks.pipelines.task import RATIO, SCALE

_ATTEMPTS = 10
_random = Random()  # noqa: S311 - no secret


def seed(number: int) -> None:
    """Gives a worker that was forked numbers of its own."""
    _random.seed(number)


def draw_flip() -> bool:
    """Says whether a picture is flipped, as often as not."""
    return _random.getrandbits(1) == 1


def draw_box(height: int, width: int) -> tuple[int, int, int, int]:
    """Draws top, left, height and width as `torchvision.transforms.RandomResizedCrop` does."""
    least, greatest = map(math.log, RATIO)
    for _ in range(_ATTEMPTS):
        area = height * width * _random.uniform(*SCALE)
        ratio = math.exp(_random.uniform(least, greatest))
        rows, columns = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
        if 0 < rows <= height and 0 < columns <= width:
            top, left = _random.randint(0, height - rows), _random.randint(0, width - columns)
            return top, left, rows, columns
    rows = min(height, round(width / RATIO[0]))
    columns = min(width, round(height * RATIO[1]))
    return (height - rows) // 2, (width - columns) // 2, rows, columns
