"""How fast JPEGs are rewritten for regions, and what becomes of their size."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.contest import Contest, Goal
from benchmarks.cost import PACKER, Cost, cost_of_command
from benchmarks.disk import flush, remove
from benchmarks.race import Course
from packer.bench import in_turns

_KEPT, _REWRITTEN = "packer, kept as they are", "packer, --image region"
_SPEED, _SIZE = "pictures a second and core", "dataset's size, of the kept one's"
_SPEED_GOAL = 200
_FILES, _FEWEST = 2000, 50
_HEAD = 1 << 16
_USUAL_TABLE = bytes.fromhex("01020300041105122131410613516107227114328191a1082342b1c11552d1f0")
"""How the usual Huffman table for AC coefficients of luma begins, ITU-T T.81, table K.5."""


def measure(course: Course, place: Path) -> Iterator[Contest]:
    """Rewrites pictures that carry Huffman tables of their own, and those with the usual ones."""
    place.mkdir()
    by_kind: dict[bool, list[Path]] = {True: [], False: []}
    for path in course.tree.paths:
        with path.open("rb") as stream:
            by_kind[_USUAL_TABLE in stream.read(_HEAD)].append(path)
    for usual, paths in by_kind.items():
        if len(paths) >= min(_FEWEST, len(course.tree.paths) // 2):
            yield _contest(course, place, paths[:: max(1, len(paths) // _FILES)], usual=usual)


def _contest(course: Course, place: Path, paths: Sequence[Path], *, usual: bool) -> Contest:
    root = place / ("usual" if usual else "own")
    for path in paths:
        link = root / path.parent.name / path.name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.hardlink_to(path)
    output = place / "packed"
    sizes: dict[str, int] = {}

    def turn(name: str, options: Sequence[str]) -> Cost:
        flush()
        command = (*PACKER, "convert", "-q", str(root), str(output), "--format", "hdf5", *options)
        try:
            cost = cost_of_command(command)
            sizes[name] = _stored(output)
        finally:
            remove(output)
        return cost

    kinds = {_KEPT: ("--image", "keep"), _REWRITTEN: ("--image", "region")}
    costs = in_turns(
        {name: partial(turn, name, options) for name, options in kinds.items()}, course.rounds
    )
    spent = {name: statistics.median(cost.cpu for cost in costs[name]) for name in kinds}
    size_bound = 1.0 if usual else 1.015
    return Contest(
        title=f"rewriting, {'the usual' if usual else 'optimised'} Huffman tables",
        cache="warm",
        samples=len(paths),
        nbytes=sizes[_KEPT],
        costs=costs,
        baselines=(_KEPT,),
        columns={
            _SPEED: {name: len(paths) / cpu for name, cpu in spent.items()},
            _SIZE: {name: size / sizes[_KEPT] for name, size in sizes.items()},
        },
        goals=(
            Goal(_REWRITTEN, "least", _SPEED_GOAL, _SPEED),
            Goal(_REWRITTEN, "most", size_bound, _SIZE),
        ),
        remarks=(
            "whole commands, from the start of the interpreter; numba's code is compiled before",
        ),
    )


def _stored(dataset: Path) -> int:
    return sum(path.stat().st_size for path in dataset.rglob("*") if path.is_file())
