"""A program that plants a cause in a real loader and leaves the run: `causes.py CAUSE RUN`."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    from torch.utils.data import DataLoader, get_worker_info

from readers.loader import MonitoredLoader
from readers.loading.transform import ImageTransform
from readers.monitor.attach import LoaderMonitor
from readers.monitor.diagnosis import diagnose
from readers.sample import Sample
from tests.trees import a_sample, jpeg

BATCH = 4
MEGABYTE = 1 << 20
BLOCK = 1 << 15
COLD = "cold"
"""Name of the file beside the run that `storage` reads."""
SEEN = "seen.json"
"""What `shared_memory` saw, in the directory of the run."""


def nap(seconds: float) -> None:
    """Waits, as for a server."""
    time.sleep(seconds)


def work(seconds: float) -> None:
    """Needs a CPU for so long."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class Items:
    """Gives numbers, at a price."""

    def __init__(
        self,
        batches: int,
        read: Callable[[int], object] = lambda _: None,
        transform: Callable[[int], Any] | None = None,
    ) -> None:
        self._samples = batches * BATCH
        self._read = read
        self.transform = transform

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401 - a number, or what is made of it
        self._read(index)
        return index if self.transform is None else self.transform(index)


def loader(items: Any, workers: int, **options: Any) -> DataLoader[Any]:  # noqa: ANN401 - PyTorch's own
    """Makes PyTorch's loader."""
    return DataLoader(items, batch_size=BATCH, num_workers=workers, **options)


def train(batches: Iterable[object], compute: float, epochs: int = 1) -> None:
    """Is a training loop that computes on another device."""
    for _ in range(epochs):
        for _ in batches:
            nap(compute)


def healthy(monitor: LoaderMonitor) -> None:
    """Keeps up."""
    train(monitor.attach(loader(Items(60, lambda _: work(0.0003)), 2)), 0.03)


def remote_storage(monitor: LoaderMonitor) -> None:
    """Waits for something far away."""
    train(monitor.attach(loader(Items(60, lambda _: nap(0.008)), 2)), 0.002)


def storage(monitor: LoaderMonitor) -> None:
    """Reads single blocks of a file that isn't in the page cache."""
    file = os.open(monitor.directory.parent / COLD, os.O_RDONLY)
    size = os.fstat(file).st_size
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    blocks = np.random.default_rng(0).permutation(size // BLOCK)

    def read(index: int) -> None:
        for block in blocks[index * 8 : index * 8 + 8].tolist():
            os.pread(file, BLOCK, block * BLOCK)

    train(monitor.attach(loader(Items(40, read), 1)), 0.0)


def decode(monitor: LoaderMonitor) -> None:
    """Decodes large pictures in our own loader."""
    samples = [a_sample(0, "a", jpeg(0, height=1500, width=2000)) for _ in range(40 * BATCH)]
    corner = ImageTransform(lambda pixels: pixels[:64, :64].copy())
    train(MonitoredLoader(samples, BATCH, transform=corner, workers=1, monitor=monitor), 0.0)


def transform(monitor: LoaderMonitor) -> None:
    """Transforms at length."""

    def augment(index: int) -> int:
        work(0.006)
        return index

    train(monitor.attach(loader(Items(40, transform=augment), 1)), 0.0)


def collate(monitor: LoaderMonitor) -> None:
    """Collates at length."""

    def gather(values: list[int]) -> Any:  # noqa: ANN401 - a tensor
        work(0.02)
        return torch.tensor(values)

    train(monitor.attach(loader(Items(40), 1, collate_fn=gather)), 0.0)


def contention(monitor: LoaderMonitor) -> None:
    """Shares the cores with rivals."""
    context = get_context("fork")
    cores = len(os.sched_getaffinity(0))
    rivals = [context.Process(target=work, args=(60.0,)) for _ in range(4 * cores)]
    for rival in rivals:
        rival.start()
    try:
        train(monitor.attach(loader(Items(40, lambda _: work(0.003)), cores)), 0.0)
    finally:
        for rival in rivals:
            rival.kill()
            rival.join()


def too_few_workers(monitor: LoaderMonitor) -> None:
    """Has one worker where two would do."""
    train(monitor.attach(loader(Items(50, lambda _: work(0.0085)), 1)), 0.025)


def imbalance(monitor: LoaderMonitor) -> None:
    """Has a worker that is slow."""

    def read(_: int) -> None:
        worker = get_worker_info()
        nap(0.02 if worker is not None and worker.id else 0.002)

    train(monitor.attach(loader(Items(60, read), 2)), 0.004)


def head_of_line(monitor: LoaderMonitor) -> None:
    """Has a slow batch in ten."""

    def read(index: int) -> None:
        nap(0.3 if index % (10 * BATCH) == 7 * BATCH else 0.0002)

    train(monitor.attach(loader(Items(70, read), 2)), 0.01)


def hand_off(monitor: LoaderMonitor) -> None:
    """Has large batches that go through a pipe."""
    batch = np.ones(20 * MEGABYTE, np.uint8)
    train(monitor.attach(loader(Items(45), 2, collate_fn=lambda _: batch)), 0.0)


def first_batch(monitor: LoaderMonitor) -> None:
    """Starts slowly in each epoch."""
    slow = loader(Items(16), 1, worker_init_fn=lambda _: nap(0.6))
    train(monitor.attach(slow), 0.01, epochs=4)


def memory_growth(monitor: LoaderMonitor) -> None:
    """Keeps what it has read."""
    kept: list[bytes] = []

    def read(index: int) -> None:
        if not index % BATCH:
            kept.append(os.urandom(MEGABYTE // 4))

    train(monitor.attach(loader(Items(180, read), 1)), 0.025)


def shared_memory(monitor: LoaderMonitor) -> None:
    """Makes more batches ahead than the shared memory holds, until it is full."""
    free = os.statvfs("/dev/shm").f_bavail * os.statvfs("/dev/shm").f_frsize  # noqa: S108 - looked at
    picture = torch.zeros(free // (10 * BATCH), dtype=torch.uint8)
    made = loader(Items(60, lambda _: nap(0.02), lambda _: picture), 2, prefetch_factor=10)
    seen: list[dict[str, object]] = []
    try:
        for _ in monitor.attach(made):
            seen.extend(
                {"rule": finding.rule, "verdict": finding.verdict}
                for finding in diagnose(monitor.recording())
            )
            nap(0.5)
    except RuntimeError as error:
        seen.append({"error": str(error)})
    (monitor.directory / SEEN).write_text(json.dumps(seen))


def waiting_for_ever() -> None:
    """Is where the worker of `stuck` stands."""
    nap(600.0)


def stuck(monitor: LoaderMonitor) -> None:
    """Comes to a sample that never comes."""

    def read(index: int) -> None:
        if index == 5 * BATCH:
            waiting_for_ever()

    train(monitor.attach(loader(Items(10, read), 1)), 0.0)


def slow_samples(monitor: LoaderMonitor) -> None:
    """Has samples that take long."""

    def slow(sample: Sample) -> str:
        work(0.2 if sample.key.endswith("7") else 0.001)
        return sample.key

    samples = [a_sample(number) for number in range(40 * BATCH)]
    train(MonitoredLoader(samples, BATCH, transform=slow, workers=1, monitor=monitor), 0.0)


CAUSES = {
    cause.__name__.replace("_", "-"): cause
    for cause in (
        collate,
        contention,
        decode,
        first_batch,
        hand_off,
        head_of_line,
        healthy,
        imbalance,
        memory_growth,
        remote_storage,
        shared_memory,
        slow_samples,
        storage,
        stuck,
        too_few_workers,
        transform,
    )
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if os.geteuid() == 0:
        os.nice(-10)  # what else runs here is no part of the plan
    name, place = sys.argv[1:]
    watching = LoaderMonitor(
        run=Path(place), memory_every=0.2, samples=10 if name == "slow-samples" else 0
    )
    CAUSES[name](watching)
    watching.close()
