"""How much memory packing and reading take, at two sizes of dataset.

Each piece of work is a process of its own, which asks the kernel for its own peak.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from benchmarks.contest import Contest, Goal
from benchmarks.cost import ROOT, Cost, cost_of
from benchmarks.disk import remove
from benchmarks.tree import Tree, part_of
from readers.registry import FORMATS

_SMALLER = 5
"""How many times as small the smaller dataset is."""
_LIMIT = 400e6
_SIZE = ("--image", "decode", "--size", "256")


def memory(tree: Tree, place: Path) -> Iterator[Contest]:
    """Packs and reads a fifth of the tree, then all of it, into each format."""
    few = max(1, len(tree.paths) // _SMALLER)
    for part in (part_of(tree, place, few), tree):
        costs: dict[str, list[Cost]] = {}
        for name, entry in FORMATS.items():
            output = place / "packed"
            convert = ("benchmarks.peak", "convert", "-q", str(part.root), str(output))
            policies = (("keep", (), entry.encoded), ("decode", _SIZE, entry.pixels))
            for policy, options in ((name, options) for name, options, held in policies if held):
                packing = _cost((*convert, "--format", name, *options))
                costs[f"convert to {name}, {policy}"] = [packing]
                reading = _cost(("benchmarks.epochs", str(output)))
                costs[f"read {name}, {policy}, ten epochs"] = [reading]
                remove(output)
        yield Contest(
            title=f"memory, {len(part.paths):,} samples",
            cache="warm",
            samples=len(part.paths),
            nbytes=part.nbytes,
            costs=costs,
            goals=tuple(Goal(name, "peak", _LIMIT) for name in costs),
        )


def _cost(command: tuple[str, ...]) -> Cost:
    """Runs a module that prints its peak, in bytes, as the last line of what it says."""
    said = ""

    def work() -> None:
        nonlocal said
        said = subprocess.run(
            (sys.executable, "-m", *command), cwd=ROOT, check=False, text=True, capture_output=True
        ).stderr

    cost = cost_of(work)
    last = said.splitlines()[-1:]
    if not last or not last[0].isdigit():
        raise click.ClickException(f"{' '.join(command)} failed: {said.strip()}")
    return Cost(cost.seconds, cost.cpu, int(last[0]))
