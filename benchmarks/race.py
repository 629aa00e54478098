"""A contest of pipelines: each in processes of its own, all turns within one run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from benchmarks.contest import Contest, Goal
from benchmarks.contestant import Contestant, Interpreters, Pantry, Script
from benchmarks.cost import Cost
from benchmarks.page_cache import cached_share
from benchmarks.pipelines.serving import Turn
from benchmarks.pipelines.task import Resize, Task
from benchmarks.tree import Tree
from packer.bench import in_turns

GPU = 1600
"""Images a second that a GPU trains with."""
BUSY = "share of the time it was fed"
_MEGA = 1e6
_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """Who takes part."""

    name: str
    script: Script
    resize: Resize | None = None
    """Its own way to resize, where it isn't the contest's."""
    source: Path | None = None
    """What it reads, where nothing is prepared for it."""


@dataclass(frozen=True, slots=True)
class Course:
    """Where and how races are held."""

    tree: Tree
    pantry: Pantry
    interpreters: Interpreters
    rounds: int
    turn: Turn = field(default_factory=Turn)
    samples: Path | None = None
    """Folder for the first pictures of each contestant, to be looked at."""


def race(
    course: Course,
    title: str,
    entries: Sequence[Entry],
    task: Task,
    *,
    goals: Callable[[Contest, Sequence[str]], Iterable[Goal]],
    baselines: Sequence[str],
    remarks: Sequence[str] = (),
) -> Contest:
    """Holds a race.

    A peer that can't be imported, or fails, is left out, and the contest tells it.

    Args:
        course: Where and how.
        title: Of the contest.
        entries: Who takes part.
        task: What they make; its source is filled in.
        goals: Gives the goals of the contest, told which peers have taken part.
        baselines: Whom the others are compared with, if they take part.
        remarks: What is to be told.
    """
    absent: dict[str, str] = {}
    with ExitStack() as stack:
        running: dict[str, Contestant] = {}
        for entry in entries:
            runner = _contestant(course, title, entry, task, absent)
            if runner is not None:
                running[entry.name] = stack.enter_context(runner)
        peers = {entry.name for entry in entries if entry.script.peer}
        costs = in_turns(
            {
                name: _forgiving(name, runner, absent) if name in peers else runner.turn
                for name, runner in running.items()
            },
            course.rounds,
        )
    warm = min((_warm(Path(runner.task.source)) for runner in running.values()), default=0.0)
    present = {name: runner for name, runner in running.items() if name not in absent}
    samples = course.turn.batches * task.batch
    contest = Contest(
        title=title,
        cache="warm",
        samples=samples,
        nbytes=round(course.tree.nbytes / len(course.tree.paths) * samples),
        costs={name: [cost.times(samples) for cost in costs[name]] for name in present},
        baselines=tuple(name for name in baselines if name in present),
        columns=_columns(present, paced=course.turn.pace is not None),
        remarks=(
            *remarks,
            f"{task.workers} workers; batches of {task.batch}, {task.side} x {task.side}",
            *(f"left out: {name} ({_line(why)})" for name, why in absent.items()),
            *_layouts(present),
            _versions(present),
            f"{warm:.1%} of the inputs in the page cache after the last turn",
        ),
    )
    return replace(contest, goals=tuple(goals(contest, sorted(peers & present.keys()))))


def best(contest: Contest, names: Sequence[str]) -> str | None:
    """Gives the fastest of some contestants; None if there are none."""
    return min(names, key=contest.seconds, default=None)


def _contestant(
    course: Course, title: str, entry: Entry, task: Task, absent: dict[str, str]
) -> Contestant | None:
    """Makes a contestant ready; notes a peer that can't take part among the absent."""
    try:
        if entry.script.peer:
            course.interpreters.check(entry.script)
        source = entry.source or course.pantry.prepare(course.tree.root, entry.script)
    except click.ClickException as error:
        if not entry.script.peer:
            raise
        absent[entry.name] = error.message
        return None
    sample = None
    if course.samples is not None:
        sample = str(course.samples / f"{title} - {entry.name}.npy".replace("/", "-"))
    own = replace(task, source=str(source), resize=entry.resize or task.resize, sample=sample)
    return Contestant(entry.script, course.interpreters.of(entry.script), own, course.turn)


def _forgiving(name: str, runner: Contestant, absent: dict[str, str]) -> Callable[[], Cost]:
    """Lets a contestant that failed once sit out."""

    def turn() -> Cost:
        if name not in absent:
            try:
                return runner.turn()
            except click.ClickException as error:
                absent[name] = error.message
        return Cost(math.nan, math.nan)

    return turn


def _columns(runners: dict[str, Contestant], *, paced: bool) -> dict[str, dict[str, float]]:
    columns = {
        f"cores for {GPU:,} images/s": {
            name: statistics.median(lap.cpu / lap.images for lap in runner.laps) * GPU
            for name, runner in runners.items()
        },
        "first batch, s": {name: runner.first_batch for name, runner in runners.items()},
        "memory, MB": {
            name: max(lap.memory for lap in runner.laps) / _MEGA for name, runner in runners.items()
        },
        "without mapped files, MB": {
            name: max(lap.own_memory for lap in runner.laps) / _MEGA
            for name, runner in runners.items()
        },
    }
    if paced:
        columns[BUSY] = {
            name: statistics.median(1 - lap.waited / lap.seconds for lap in runner.laps)
            for name, runner in runners.items()
        }
    return columns


def _layouts(runners: dict[str, Contestant]) -> Iterator[str]:
    """Says who makes batches of which layout."""
    layouts: dict[str, list[str]] = {}
    for name, runner in runners.items():
        if runner.first is not None:
            layouts.setdefault(runner.first.layout, []).append(name)
    for layout, names in layouts.items():
        yield f"{layout}: {'; '.join(names)}"


def _versions(runners: dict[str, Contestant]) -> str:
    """Lists the libraries; one of which contestants have different versions is listed with each."""
    found = {
        f"{library} {version}"
        for runner in runners.values()
        if runner.first is not None
        for library, version in runner.first.versions.items()
    }
    return ", ".join(sorted(found, key=str.lower))


def _warm(source: Path) -> float:
    """Says which share of an input is in the page cache."""
    files = sorted(path for path in source.rglob("*") if path.is_file()) or [source]
    return cached_share(files[:: max(1, len(files) // _LOOKED_AT)])


def _line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else "it failed"
