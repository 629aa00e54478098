"""Our loader against PyTorch's on the same reader, transform and cores.

Each turn is a process of its own, `python -m benchmarks.loading ...`, so that neither finds memory
or threads of the other. It tells the time to the first batch, the time of the batches after it, and
the most anonymous and shared memory that all its processes held together, each page counted once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any, Final

import click
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import DataLoader

from benchmarks.contest import Contest, Goal
from benchmarks.cost import ROOT, Cost
from benchmarks.tree import Tree
from packer.bench import in_turns
from packer.convert import convert
from packer.sources.opening import open_source
from readers import Dataset, ImageTransform, MonitoredLoader, open_dataset
from readers.torch import MapDataset

_WORKERS: Final = 2
_SIDE: Final = 224
_SAMPLES: Final = 1536
_LOOK_EVERY: Final = 5
_OURS, _THEIRS = "our loader", "PyTorch's loader"


@dataclass(frozen=True, slots=True)
class Setting:
    """What both loaders are asked to do."""

    name: str
    batch: int
    transform: str
    worker_kind: str
    """Of ours; PyTorch's has processes."""


SETTINGS: Final = (
    Setting("batches of 64, decode and resize, ours in threads", 64, "resize", "thread"),
    Setting("batches of 256, decode and resize, ours in threads", 256, "resize", "thread"),
    Setting("batches of 64, a transform in Python, ours in processes", 64, "python", "fork"),
)


def loading(tree: Tree, place: Path, *, rounds: int) -> Iterator[Contest]:
    """Holds two contests for each setting: steady speed and memory, and the first batch."""
    path = place / "loading.lmdb"
    manifest = convert(open_source(tree.root), path, format="lmdb")
    for setting in SETTINGS:
        turns = in_turns(
            {name: partial(_turn, name, path, setting) for name in (_OURS, _THEIRS)}, rounds
        )
        samples = min(_SAMPLES, manifest.samples) // setting.batch * setting.batch
        share = (samples - setting.batch) / manifest.samples
        yield Contest(
            title=f"loading, {setting.name}",
            cache="warm",
            samples=samples - setting.batch,
            nbytes=int(tree.nbytes * share),
            costs={name: [steady for _, steady in pairs] for name, pairs in turns.items()},
            baselines=(_THEIRS,),
            goals=(Goal(_OURS, "ratio", 1.0, _THEIRS), Goal(_OURS, "peak", 1.0, _THEIRS)),
            remarks=("memory is anonymous and shared, of all processes, beyond that at the start",),
        )
        yield Contest(
            title=f"first batch, {setting.name}",
            cache="warm",
            samples=setting.batch,
            nbytes=int(tree.nbytes * setting.batch / manifest.samples),
            costs={name: [first for first, _ in pairs] for name, pairs in turns.items()},
            baselines=(_THEIRS,),
            goals=(Goal(_OURS, "ratio", 1.0, _THEIRS),),
        )


def _turn(name: str, path: Path, setting: Setting) -> tuple[Cost, Cost]:
    place = str(SETTINGS.index(setting))
    said = subprocess.run(
        (sys.executable, "-m", "benchmarks.loading", name, str(path), place),
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    first, steady = json.loads(said.splitlines()[-1])
    return Cost(**first), Cost(**steady)


@click.command()
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("place", type=int)
def main(name: str, path: Path, place: int) -> None:
    """Take one turn of a loader and print its costs: of the first batch, and of the others."""
    setting = SETTINGS[place]
    torch.set_num_threads(1)
    with open_dataset(path) as dataset:
        loader = _LOADERS[name](dataset, setting)
        before = _memory(os.getpid())
        began = time.perf_counter()
        batches = iter(loader)
        next(batches)
        first, cpu = time.perf_counter() - began, _processor()
        began, peak = time.perf_counter(), 0
        for number, _ in enumerate(islice(batches, _SAMPLES // setting.batch - 1)):
            if number % _LOOK_EVERY == 0:
                paused = time.perf_counter()
                peak = max(peak, sum(map(_memory, _family(os.getpid()))) - before)
                began += time.perf_counter() - paused
        steady = time.perf_counter() - began
        del batches, loader
        costs = (Cost(first, cpu), Cost(steady, _processor() - cpu, peak))
    print(json.dumps([{"seconds": c.seconds, "cpu": c.cpu, "peak": c.peak} for c in costs]))


def _ours(dataset: Dataset, setting: Setting) -> Iterable[Any]:
    return MonitoredLoader(
        dataset,
        setting.batch,
        transform=_TRANSFORMS[setting.transform],
        workers=_WORKERS,
        worker_kind=setting.worker_kind,  # type: ignore[arg-type]
        shuffle=True,
        output="torch",
    )


def _theirs(dataset: Dataset, setting: Setting) -> Iterable[Any]:
    return DataLoader(
        MapDataset(dataset, _TRANSFORMS[setting.transform]),
        setting.batch,
        shuffle=True,
        num_workers=_WORKERS,
        generator=torch.Generator().manual_seed(0),
    )


def _resized(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    picture = Image.fromarray(pixels).resize((_SIDE, _SIDE), Image.Resampling.BILINEAR)
    return np.array(picture)


def _in_python(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Does the same and then holds the interpreter for some milliseconds, as loops in Python do."""
    small = _resized(pixels)
    total = 0
    for number in range(50_000):
        total += number
    return small


_TRANSFORMS: Final = {"resize": ImageTransform(_resized), "python": ImageTransform(_in_python)}
_LOADERS: Final[dict[str, Callable[[Dataset, Setting], Iterable[Any]]]] = {
    _OURS: _ours,
    _THEIRS: _theirs,
}


def _memory(process: int) -> int:
    """Adds up anonymous and shared memory, each page divided by those who share it."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
    wanted = ("Pss_Anon:", "Pss_Shmem:")
    lines = (line.split() for line in rollup.splitlines())
    return sum(int(words[1]) * 1024 for words in lines if words[0] in wanted)


def _family(process: int) -> Iterator[int]:
    """Gives a process and all its descendants."""
    yield process
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text(encoding="ascii").split():
            yield from _family(int(child))


def _processor() -> float:
    usages = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    main()
