"""How long loaders wait for cold samples, at places: the folder against what it was packed into.

    python -m benchmarks.loaders --place ssd=/data --place sshfs=/mnt/far --forget sshfs='remount'

Each place is a directory that holds `folder` and a packed dataset for each format, named by it.
Samples are read in random order and not decoded: what is measured is storage and nothing else.
The contestants take turns; every turn begins cold.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch.utils.data
from numpy.typing import NDArray

from benchmarks.page_cache import evict
from readers.dataset import Dataset
from readers.loader import MonitoredLoader
from readers.monitor.attach import LoaderMonitor
from readers.monitor.columns import seconds
from readers.opening import open_dataset

_BATCH = 64
_WORKERS = 2
_AT_ONCE = 16
_BLOCK = 1 << 20
_FORMATS = ("webdataset", "lmdb")
STOCK, OURS, STREAM = (
    "folder, torch DataLoader",
    "folder, our loader",
    "one file, blocks of 1 MiB in a row",
)

Batches = Sequence[NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn of a contestant took."""

    rate: float
    """Samples per second, as the loop got them."""
    dataset_time: NDArray[np.float64]
    """Seconds that a worker spent on each batch's samples."""
    wait: NDArray[np.float64]
    """Seconds that the loop waited for each batch."""


class Files:
    """The files of a folder, in the order of the dataset that was packed from it."""

    def __init__(self, folder: Path, dataset: Dataset) -> None:
        self._paths = [str(folder / dataset.index.path(row)) for row in range(len(dataset))]
        self._threads: ThreadPoolExecutor | None = None

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> bytes:
        descriptor = os.open(self._paths[index], os.O_RDONLY)
        try:
            return os.read(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)


class FilesAtOnce(Files):
    """The same, as many at once as our reader asks for, the next batches meanwhile."""

    def read_many(self, indices: Sequence[int]) -> list[bytes]:
        """Reads a batch."""
        return self.read_ahead(indices)()

    def read_ahead(self, indices: Sequence[int]) -> Callable[[], list[bytes]]:
        """Begins to read a batch."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_AT_ONCE)
        found = [self._threads.submit(self.__getitem__, int(index)) for index in indices]
        return lambda: [future.result() for future in found]


def turns(place: Path, step: float) -> dict[str, Callable[[Batches], Turn]]:
    """Gives the contestants of a place."""
    with open_dataset(place / _FORMATS[0]) as dataset:
        files = Files(place / "folder", dataset)
        at_once = FilesAtOnce(place / "folder", dataset)
    found = {
        STOCK: lambda batches: _stock(files, batches, step),
        OURS: lambda batches: _ours(at_once, batches, step),
    }
    for name in _FORMATS:
        found[name] = lambda batches, path=place / name: _ours(  # type: ignore[misc]
            open_dataset(path, check="never"), batches, step
        )
    found[STREAM] = lambda batches: _stream(place / _FORMATS[0], batches)
    return found


def _stock(files: Files, batches: Batches, step: float) -> Turn:
    loader: Any = torch.utils.data.DataLoader(
        files,  # type: ignore[arg-type]  # any sequence will do
        batch_sampler=[batch.tolist() for batch in batches],
        num_workers=_WORKERS,
        collate_fn=len,
    )
    return _measured(loader, len(batches), step, LoaderMonitor())


def _ours(source: Any, batches: Batches, step: float) -> Turn:  # noqa: ANN401 - files or samples
    monitor = LoaderMonitor()
    with MonitoredLoader(
        source, batches=batches, transform=_nothing, collate=len, workers=_WORKERS, monitor=monitor
    ) as loader:
        return _measured(loader, len(batches), step, monitor)


def _nothing(_sample: object) -> int:
    return 0


def _measured(loader: Any, batches: int, step: float, monitor: LoaderMonitor) -> Turn:  # noqa: ANN401
    attached = loader if isinstance(loader, MonitoredLoader) else monitor.attach(loader)
    began = time.perf_counter()
    for _ in attached:
        time.sleep(step)
    took = time.perf_counter() - began
    recording = monitor.recording()
    return Turn(
        batches * _BATCH / took,
        seconds(recording.batches, "dataset"),
        seconds(recording.steps, "wait"),
    )


def _stream(dataset: Path, batches: Batches) -> Turn:
    """Reads as many bytes as the batches have, in the order of the file, by as many threads."""
    with open_dataset(dataset) as opened:
        nbytes = int(opened.index.lengths[np.concatenate(batches)].sum())
        path = dataset / opened.manifest.shards[0].name
    descriptor = os.open(path, os.O_RDONLY)
    try:
        began = time.perf_counter()
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            blocks = range(0, nbytes, _BLOCK)
            for _ in threads.map(lambda start: len(os.pread(descriptor, _BLOCK, start)), blocks):
                pass
        took = time.perf_counter() - began
    finally:
        os.close(descriptor)
    nothing = np.full(1, np.nan)
    return Turn(len(batches) * _BATCH / took, nothing, nothing)


def _forget(place: Path, command: str | None) -> None:
    if command is None:
        evict(path for path in place.rglob("*") if path.is_file())
    else:
        subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)  # noqa: S602


def _pairs(values: Sequence[str]) -> dict[str, str]:
    return {name: rest for name, _, rest in (value.partition("=") for value in values)}


@click.command()
@click.option("--place", "places", multiple=True, required=True, help="NAME=DIRECTORY")
@click.option("--forget", multiple=True, help="NAME=COMMAND that empties the caches of a place.")
@click.option("--batches", default=8, show_default=True, help="Batches a turn, of 64 samples.")
@click.option("--rounds", default=5, show_default=True)
@click.option("--step-ms", default=0.0, show_default=True, help="What the loop does with a batch.")
def main(
    *, places: tuple[str, ...], forget: tuple[str, ...], batches: int, rounds: int, step_ms: float
) -> None:
    """Measure and print a table a place."""
    commands = _pairs(forget)
    step = step_ms / 1000
    for name, directory in _pairs(places).items():
        place = Path(directory)
        click.echo(f"**{name}**, cold, shuffled, batches of {_BATCH}, step {step_ms:g} ms\n")
        taken = _taken(place, commands.get(name), batches, rounds, step)
        click.echo("\n".join(_rows(taken)) + "\n")


def _taken(
    place: Path, command: str | None, count: int, rounds: int, step: float
) -> dict[str, list[Turn]]:
    contestants = turns(place, step)
    with open_dataset(place / _FORMATS[0]) as dataset:
        samples = len(dataset)
    chance = np.random.default_rng(0)
    taken: dict[str, list[Turn]] = {contestant: [] for contestant in contestants}
    for _ in range(rounds):
        rows = chance.permutation(samples)[: count * _BATCH].reshape(count, _BATCH)
        for contestant, turn in contestants.items():
            _forget(place, command)
            taken[contestant].append(turn(list(rows)))
    return taken


def _rows(taken: Mapping[str, Sequence[Turn]]) -> Iterator[str]:
    yield "| | samples/s | ratio | dataset_time P50 ms | P99 ms | loop's wait P50 ms | P99 ms |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for contestant, turn_list in taken.items():
        ratio = statistics.median(
            own.rate / stock.rate for own, stock in zip(turn_list, taken[STOCK], strict=True)
        )
        spread = [
            f"{value * 1000:.2f}"
            for values in (
                np.concatenate([turn.dataset_time for turn in turn_list]),
                np.concatenate([turn.wait for turn in turn_list]),
            )
            for value in np.nanpercentile(values, (50, 99))
        ]
        rate = statistics.median(turn.rate for turn in turn_list)
        yield f"| {contestant} | {rate:,.0f} | {ratio:.2f} | {' | '.join(spread)} |"


if __name__ == "__main__":
    main()
