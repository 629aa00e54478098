"""Makes one batch: reads, transforms and collates in the thread that asks for it.

A batch is made by one worker from its first sample to its last, so the stages add up to the time
that the batch took, whatever the number of workers; several batches are made side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from typing import Any, Protocol, TypeAlias

import numpy as np

from readers.draws import begin_sample
from readers.loading.columns import Columns
from readers.loading.faults import annotate, annotated
from readers.loading.output import Output
from readers.loading.reading import Part, parts_of
from readers.loading.stopwatch import Clock, ClockSource, Unmeasured
from readers.loading.structure import map_arrays
from readers.loading.task import Task
from readers.loading.transform import Slots, Transform, writer_of
from readers.monitor.record import UNKNOWN
from readers.monitor.sample_times import SampleTimes
from readers.permutation import derive_seed
from readers.protocols import SupportsReadAhead, SupportsReadMany
from readers.sample import Sample
from readers.span import TRANSFORM

_SHOWN = 8
_UNMEASURED = Unmeasured(UNKNOWN)

Collate: TypeAlias = Callable[[list[Any]], Any]
Apply: TypeAlias = Callable[["Task", list[Any], int, Slots], object]
"""Transforms one of the samples of a task."""


class Items(Protocol):
    """What a loader reads: a `readers.protocols.Source`, or any sequence of samples."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...  # noqa: ANN401 - any kind of sample


class Abandoned(Exception):  # noqa: N818 - no error: nobody wants the batch any longer
    """The pass was ended while a batch was being made."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What batches are made of, and how."""

    source: Items
    transform: Transform
    """Applied to each sample."""
    collate: Collate | None
    """Makes a batch of a list of transformed samples; None for `Columns`."""
    seed: int = 0
    """Of the random numbers that transforms draw, 0 to 2**64 - 1."""
    may_repeat: bool = False
    """Whether a sample may be in an epoch several times, so that its random numbers have to depend
    on its place in the batch too."""


class BatchMaker:
    """Makes batches; several threads may use one.

    Args:
        recipe: What they are made of.
        output: What arrays become.
    """

    def __init__(self, recipe: Recipe, output: Output) -> None:
        self._source = recipe.source
        self._transform = recipe.transform
        self._collate = recipe.collate
        self._seed = recipe.seed
        self._may_repeat = recipe.may_repeat
        self._writes_into = writer_of(recipe.transform)
        self._output = output
        self._stopped = False
        self._begins = isinstance(recipe.source, SupportsReadAhead)
        self._begun: dict[int, Part] = {}

    def begin(self, tasks: Sequence[Task]) -> bool:
        """Begins to read at once what some tasks need, where the source can in the background.

        Returns:
            Whether it has begun.
        """
        source = self._source
        if self._begins and isinstance(source, SupportsReadAhead):
            with suppress(Exception):  # `make` reads again, and raises it in the batch's turn
                every = [task.indices for task in tasks]
                wait = source.read_ahead(every[0] if len(every) == 1 else np.concatenate(every))
                if wait is not None:
                    self._begun |= parts_of(wait, tasks)
                    return True
        return False

    def stop(self) -> None:
        """Ends each `make` that is under way before its next sample, and every later one."""
        self._stopped = True
        self._begun.clear()

    def make(self, task: Task, clocks: ClockSource) -> object:
        """Makes a batch.

        Raises:
            Abandoned: The pass was ended meanwhile.
            BaseException: What reading, transforming or collating raised, with a note that names
                the sample.
        """
        clock: Clock = clocks.begin(task.number, task.turn) or _UNMEASURED
        try:
            batch = self._make(task, clock)
        except BaseException as error:  # whatever it was, the clock must not go on
            clock.abandon()
            if isinstance(error, StopIteration):  # which would end the user's loop in silence
                raise RuntimeError("a transform raised StopIteration") from error  # noqa: TRY004
            raise
        clock.end(batch)
        return map_arrays(batch, self._output.deliver)

    def _make(self, task: Task, clock: Clock) -> object:
        items = self._read(task, clock.times)
        apply = self._apply if clock.times is None else clock.times.also(self._apply)
        clock.samples = len(items)
        try:
            if self._collate is None:
                return self._fill(task, items, clock, apply)
            clock.enter(TRANSFORM)
            values = [apply(task, items, place, None) for place in range(len(items))]
            clock.leave()
        finally:
            begin_sample(None)
        clock.collate()
        with annotated(lambda: f"while collating {name_batch(task)}"):
            return self._collate(values)

    def _read(self, task: Task, times: SampleTimes | None) -> list[Any]:
        source = self._source
        wait = self._begun.pop(task.number, None)
        with annotated(lambda: f"while reading {name_batch(task)}"):
            if times is not None:
                self._begins = False  # a sample's own time shows when it is read alone
                get = source.__getitem__
                return [times.read(get, int(index), source) for index in task.indices]
            if wait is not None and (items := wait()) is not None:
                return items
            if isinstance(source, SupportsReadMany):
                return list(source.read_many(task.indices))
            return [source[int(index)] for index in task.indices]

    def _fill(self, task: Task, items: list[Any], clock: Clock, apply: Apply) -> object:
        columns = Columns(len(items), self._output.allocate)
        collating = 0
        clock.enter(TRANSFORM)
        for place in range(len(items)):
            slots = columns.slots() if self._writes_into is not None else None
            value = apply(task, items, place, slots)
            began = perf_counter_ns()
            columns.add(value)
            collating += perf_counter_ns() - began
        clock.leave()
        # Told once: entering and leaving a stage for each sample would cost four times as much.
        clock.collated(collating)
        clock.collate()
        return columns.finish()

    def _apply(self, task: Task, items: list[Any], place: int, slots: Slots) -> object:
        if self._stopped:
            raise Abandoned
        item = items[place]
        items[place] = None  # what was read is given back sample by sample
        begin_sample(partial(self._seed_of, task, place))
        try:
            if slots is None or self._writes_into is None:
                return self._transform(item)
            return self._writes_into.write_into(item, slots)
        except Exception as error:
            annotate(error, f"while transforming {_name_item(task, place, item)}")
            raise

    def _seed_of(self, task: Task, place: int) -> int:
        """Gives the seed of a sample: who makes it, and when, has no part in it."""
        seed = derive_seed(derive_seed(self._seed, task.epoch), int(task.indices[place]))
        return derive_seed(seed, place) if self._may_repeat else seed


def name_batch(task: Task) -> str:
    """Names a batch by its number and its samples."""
    shown = ", ".join(str(int(index)) for index in task.indices[:_SHOWN])
    more = ", …" if len(task.indices) > _SHOWN else ""
    return f"batch {task.number} of epoch {task.epoch}, samples {shown}{more}"


def _name_item(task: Task, place: int, item: object) -> str:
    key = f" ({item.key!r})" if isinstance(item, Sample) else ""
    return f"sample {int(task.indices[place])}{key}, batch {task.number} of epoch {task.epoch}"
