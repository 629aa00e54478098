"""Data whose stages take a known time: each says how long it really took, however busy the
machine is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

SAMPLES = 24
BATCH = 4
BATCHES = SAMPLES // BATCH


@dataclass(frozen=True)
class Planted:
    """What a batch says of itself, in nanoseconds."""

    number: int
    dataset: int
    transform: int
    collate: int
    began: int
    ended: int


def pause(seconds: float) -> int:
    """Sleeps and tells for how many nanoseconds."""
    began = time.perf_counter_ns()
    time.sleep(seconds)
    return time.perf_counter_ns() - began


class Transform:
    """Takes 2 ms."""

    def __call__(self, sample: dict[str, int]) -> dict[str, int]:
        return sample | {"transform": pause(0.002)}


class Samples:
    """Each sample takes 3 ms to read and 2 ms to transform."""

    def __init__(self, transform: Any = None) -> None:  # noqa: ANN401 - any function
        self.transform = Transform() if transform is None else transform

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401 - what the transform gives
        began = time.perf_counter_ns()
        return self.transform({"index": index, "began": began, "dataset": pause(0.003)})


def collate(samples: list[dict[str, int]]) -> Planted:
    """Takes 6 ms."""
    took = pause(0.006)
    return Planted(
        number=samples[0]["index"] // BATCH,
        dataset=sum(sample["dataset"] for sample in samples),
        transform=sum(sample["transform"] for sample in samples),
        collate=took,
        began=samples[0]["began"],
        ended=time.perf_counter_ns(),
    )


def agree(measured: Sequence[int], planted: Sequence[int]) -> bool:
    """Tells whether times are within 5 %, and 1 ms for what lies between two looks at the clock.

    None may be shorter. A busy machine may stop a process between our look at the clock and the
    monitor's, so of what is longer the median counts.
    """
    pairs = list(zip(measured, planted, strict=True))
    return all(0.95 * true <= seen for seen, true in pairs) and (
        median(seen - 1.05 * true for seen, true in pairs) <= 1_000_000
    )
