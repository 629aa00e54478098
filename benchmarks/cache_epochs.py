"""What `PixelCache` costs in the epoch that fills it, and what it gives in the next ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest import Contest, Goal
from benchmarks.contestant import Script
from benchmarks.cost import Cost, cost_of
from benchmarks.disk import flush, remove
from benchmarks.pipelines.ours_augment import augmentation
from benchmarks.pipelines.task import Task
from benchmarks.race import Course
from packer.bench import in_turns
from packer.engines.local import worker_count
from readers import MonitoredLoader, PixelCache, Sample, open_dataset
from readers.fitting import fitted
from readers.loading.maker import Items
from readers.sample import as_rgb

_WITHOUT, _PACKED = "decoded in every epoch", "packed pixels"
_FIRST, _SECOND = "PixelCache, first epoch", "PixelCache, second epoch"
_FIRST_GOAL, _SECOND_GOAL = 0.9, 0.95


class Fitted:
    """Samples whose pictures are decoded and fitted at each access, as a cache does it once.

    Args:
        source: The dataset.
        side: Height and width of the pixels.
    """

    def __init__(self, source: Items, side: int) -> None:
        self._source = source
        self._size = (side, side)

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int, /) -> Sample:
        sample: Sample = self._source[index]
        made = fitted(as_rgb(sample.image), self._size, "crop", max_pixels=None)
        return sample._replace(image=np.ascontiguousarray(made.pixels))


def measure(course: Course, source: Path, place: Path, side: int) -> Contest:
    """Goes over all samples in each turn, with random resized crops.

    Args:
        course: Where and how.
        source: A dataset of JPEGs.
        place: Folder that is made for caches.
        side: Height and width of the cached pixels.
    """
    place.mkdir()
    options = ("--format", "npy", "--image", "decode", "--size", str(side))
    packed = course.pantry.prepare(course.tree.root, Script("ours", options))
    with ExitStack() as stack:
        dataset = stack.enter_context(open_dataset(source))
        pixels = stack.enter_context(open_dataset(packed, copy=False))
        full = stack.enter_context(PixelCache(open_dataset(source), place / "full", size=side))
        _epoch(full)

        def first() -> Cost:
            path = place / "new"
            try:
                with PixelCache(open_dataset(source), path, size=side) as cache:
                    return _epoch(cache)
            finally:
                remove(path.with_name(f"{path.name}.filling"))

        turns: dict[str, Callable[[], Cost]] = {
            _WITHOUT: lambda: _epoch(Fitted(dataset, side)),
            _FIRST: first,
            _SECOND: lambda: _epoch(full),
            _PACKED: lambda: _epoch(pixels),
        }
        costs = in_turns(turns, course.rounds)
    return Contest(
        title=f"PixelCache of {side} x {side}, an epoch",
        cache="warm",
        samples=len(course.tree.paths),
        nbytes=course.tree.nbytes,
        costs=costs,
        baselines=(_WITHOUT, _PACKED),
        goals=(
            Goal(_FIRST, "ratio", _FIRST_GOAL, _WITHOUT),
            Goal(_SECOND, "ratio", _SECOND_GOAL, _PACKED),
        ),
        remarks=(
            f"{_WITHOUT}: fitted to the same pixels, with nothing kept",
            "all with random resized crops to 224 x 224, over areas",
        ),
    )


def _epoch(source: Items) -> Cost:
    """Takes all batches of an epoch; what turns before have written is on the disk by then."""
    flush()
    task = Task("", resize="area")
    loader: Any = MonitoredLoader(
        source,
        task.batch,
        transform=augmentation(task),
        workers=worker_count(0),
        shuffle=True,
    )
    with loader:
        return cost_of(lambda: deque(loader, maxlen=0))
