"""The side of a pipeline's process: it prepares its input, or makes batches turn by turn.

`prepare FOLDER OUTPUT [OPTION…]` makes what it reads of a folder of class folders.

`run DESCRIPTOR TASK` makes batches. The descriptor is one end of a socket pair, on which
`multiprocessing.connection` speaks, the task is JSON of `benchmarks.pipelines.task.Task`. The
process says `First` when it has the first batch, and then a `Lap` for each `Turn` that it is given,
until the connection is closed. All are dicts on the way.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.pipelines.process_group import cpu_seconds, memory
from benchmarks.pipelines.task import Batches, Task

_CHANNELS = 3
_LOOKED_AT = 8


@dataclass(frozen=True, slots=True)
class First:
    """What a process tells of its first batch."""

    layout: str
    """NHWC or NCHW."""
    level: float
    """Mean of the first pictures."""
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a process is to do in a turn."""

    batches: int = 8
    """Batches timed, at least."""
    seconds: float = 4.0
    """For so long, at least."""
    unmeasured: int = 2
    """Batches before the clock starts; the number timed is a multiple of this, for workers that
    make a batch each tend to finish together."""
    pace: float | None = None
    """Images a second that the loop takes, as a stand-in for a GPU that trains; None: all it gets.
    It sleeps meanwhile."""


@dataclass(frozen=True, slots=True)
class Lap:
    """What a turn took."""

    images: int
    seconds: float
    """By the wall clock."""
    cpu: float
    """Seconds of all threads of all processes."""
    waited: float
    """Seconds of the loop without a batch."""
    memory: int
    """Bytes of all processes, what they share counted once."""
    own_memory: int
    """The same without pages of mapped files."""


def serve(
    batches: Callable[[Task], Batches],
    prepare: Callable[..., None] | None = None,
    libraries: Sequence[str] = (),
) -> None:
    """Does what the command line says.

    Args:
        batches: Opens the pipeline.
        prepare: Makes its input: takes the folder, the output, and what else the pipeline's manner
            needs, all as `str`. None for a pipeline that reads the folder.
        libraries: Distributions whose versions matter.
    """
    what, *arguments = sys.argv[1:]
    if what == "prepare" and prepare is not None:
        prepare(*arguments)
        return
    task = Task(**json.loads(arguments[1]))
    with Connection(int(arguments[0])) as connection:
        made = iter(batches(task))
        images, labels = next(made)
        connection.send(asdict(_looked_at(np.asarray(images), len(labels), task, libraries)))
        while True:
            try:
                turn = Turn(**connection.recv())
            except EOFError:
                break
            connection.send(asdict(_lap(made, turn, task.batch)))


def _looked_at(images: NDArray[Any], labels: int, task: Task, libraries: Sequence[str]) -> First:
    """Sees whether a batch is what was asked for."""
    last = images.shape[-1] == _CHANNELS
    place = (task.side, task.side, _CHANNELS) if last else (_CHANNELS, task.side, task.side)
    if images.shape != (task.batch, *place) or images.dtype != np.uint8 or labels != task.batch:
        raise ValueError(f"a batch of {images.shape}, {images.dtype}, with {labels} labels")
    if task.sample is not None:
        few = images[:_LOOKED_AT]
        np.save(task.sample, few if last else few.transpose(0, 2, 3, 1))
    versions = {name: importlib.metadata.version(name) for name in libraries}
    return First(
        "NHWC" if last else "NCHW",
        float(images.mean()),
        {**versions, "Python": platform.python_version()},
    )


def _lap(batches: Batches, turn: Turn, size: int) -> Lap:
    for _ in range(turn.unmeasured):
        next(batches)
    taken = memory()
    step = 0.0 if turn.pace is None else size / turn.pace
    count, trained = 0, 0.0
    cpu, began = cpu_seconds(), time.perf_counter()
    while True:
        next(batches)
        count += 1
        if step:
            time.sleep(step)
            trained += step
        seconds = time.perf_counter() - began
        full = count % turn.unmeasured == 0 if turn.unmeasured else True
        if count >= turn.batches and seconds >= turn.seconds and full:
            break
    spent = cpu_seconds() - cpu
    return Lap(count * size, seconds, spent, seconds - trained, *taken)
