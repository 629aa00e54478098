"""What the monitor costs: the same loader with it and without, in turns.

First where there is next to nothing else to do, so that its own time shows; then in a real pipeline
of JPEGs. Processor time counts all threads and the worker processes that have ended.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Subset

from benchmarks.contest import Contest, Goal
from benchmarks.cost import Cost
from benchmarks.tree import Tree, part_of
from packer.bench import in_turns
from packer.convert import convert
from packer.sources.opening import open_source
from readers import ImageTransform, MonitoredLoader, open_dataset
from readers.loading.maker import Items
from readers.monitor import LoaderMonitor
from readers.torch import MapDataset

_BATCH: Final = 64
_BATCHES: Final = 3000
_TURNS: Final = 5
"""Turns a round: short ones, so that few are disturbed and medians pass over those."""
_IMAGES: Final = 1920
_LONG_TURNS: Final = 3
_SIDE: Final = 224
_WITHOUT, _WITH = "without the monitor", "with the monitor"
_A_BATCH, _A_SAMPLE, _SLOWER = 10e-6, 1e-6, 1.01
_ARRAY: Final = np.zeros((_BATCH, 8))

_Make = Callable[[LoaderMonitor], Iterable[Any]]
"""Makes a loader and attaches it."""


class Numbers(Dataset[Any]):
    """A dataset of the numbers from 0, handed out as they are or through a function."""

    def __init__(self, size: int, transform: Callable[[int], int] | None = None) -> None:
        self._size = size
        self.transform = transform

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> int:
        return index if self.transform is None else self.transform(index)


def overhead(tree: Tree, place: Path, *, rounds: int) -> Iterator[Contest]:
    """Holds a contest for each kind of loader, idle and at work."""
    samples = _BATCH * _BATCHES
    idle: dict[str, tuple[_Make, Goal]] = {
        "PyTorch's loader": (
            partial(_torch, dataset=Numbers(samples), collate=_nothing),
            Goal(_WITH, "added", _A_BATCH, _WITHOUT, "batch", _BATCHES),
        ),
        "PyTorch's loader, its dataset's transform timed": (
            partial(_torch, dataset=Numbers(samples, _same), collate=_nothing),
            Goal(_WITH, "added", _A_SAMPLE, _WITHOUT, "sample", samples),
        ),
        "our loader, no worker": (
            partial(_ours, source=Numbers(samples), transform=_same, workers=0),
            Goal(_WITH, "added", _A_BATCH, _WITHOUT, "batch", _BATCHES),
        ),
        "our loader, a thread": (
            partial(_ours, source=Numbers(samples), transform=_same, workers=1),
            Goal(_WITH, "added", _A_BATCH, _WITHOUT, "batch", _BATCHES),
        ),
    }
    for name, (make, goal) in idle.items():
        yield Contest(
            title=f"overhead, {name}, nothing to do",
            cache="warm",
            samples=samples,
            nbytes=0,
            costs=_in_turns(make, rounds * _TURNS),
            baselines=(_WITHOUT,),
            goals=(goal,),
            remarks=(f"batches of {_BATCH}",),
        )
    yield from _pipelines(tree, place, rounds * _LONG_TURNS)


def _pipelines(tree: Tree, place: Path, rounds: int) -> Iterator[Contest]:
    part = part_of(tree, place, min(_IMAGES, len(tree.paths)))
    path = place / "overhead.lmdb"
    convert(open_source(part.root), path, format="lmdb")
    torch.set_num_threads(1)
    with open_dataset(path) as dataset:
        transform = ImageTransform(_small)
        photos = Subset(MapDataset(dataset, transform), range(len(dataset)))
        pipelines: dict[str, _Make] = {
            "PyTorch's loader, 2 processes": partial(
                _torch, dataset=photos, collate=_stack, workers=2
            ),
            "our loader, 2 threads": partial(_ours, source=dataset, transform=transform, workers=2),
        }
        for name, make in pipelines.items():
            yield Contest(
                title=f"overhead, {name}, JPEGs decoded and resized to {_SIDE} x {_SIDE}",
                cache="warm",
                samples=len(dataset),
                nbytes=part.nbytes,
                costs=_in_turns(make, rounds),
                baselines=(_WITHOUT,),
                goals=(
                    Goal(_WITH, "processor", _SLOWER, _WITHOUT),
                    Goal(_WITH, "ratio", 1 / _SLOWER, _WITHOUT),
                ),
            )


def _in_turns(make: _Make, rounds: int) -> dict[str, list[Cost]]:
    return in_turns(
        {
            _WITHOUT: partial(_turn, make, measured=False),
            _WITH: partial(_turn, make, measured=True),
        },
        rounds,
    )


def _turn(make: _Make, *, measured: bool) -> Cost:
    """Goes through a loader once; making it, and closing its run, isn't timed."""
    monitor = LoaderMonitor()
    loader = make(monitor)
    if not measured:
        loader = monitor.detach(loader)
    gc.collect()
    cpu, began = _processor(), time.perf_counter()
    for _ in loader:
        pass
    cost = Cost(time.perf_counter() - began, _processor() - cpu)
    monitor.close()
    return cost


def _processor() -> float:
    usages = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _torch(
    monitor: LoaderMonitor,
    dataset: Dataset[Any],
    collate: Callable[[list[Any]], Any],
    workers: int = 0,
) -> Iterable[Any]:
    loader = DataLoader(dataset, batch_size=_BATCH, collate_fn=collate, num_workers=workers)
    return monitor.attach(loader)


def _ours(
    monitor: LoaderMonitor, source: Items, transform: Callable[[Any], Any], workers: int
) -> Iterable[Any]:
    loader = MonitoredLoader(source, _BATCH, transform=transform, workers=workers, monitor=monitor)
    return loader._measured  # noqa: SLF001 - what it iterates, which can be detached


def _same(number: int) -> int:
    return number


def _nothing(_samples: list[int]) -> NDArray[np.float64]:
    return _ARRAY


def _small(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    picture = Image.fromarray(pixels).resize((_SIDE, _SIDE), Image.Resampling.BILINEAR)
    return np.array(picture)


def _stack(samples: Sequence[tuple[NDArray[np.uint8], int]]) -> NDArray[np.uint8]:
    return np.stack([pixels for pixels, _ in samples])
