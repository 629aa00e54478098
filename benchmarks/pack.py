"""How fast a tree is packed: `packer convert`, stock tools, and what people write by hand.

Every turn is a process of its own, from the start of its interpreter to its end. Before a turn,
all that earlier ones wrote is flushed, so that nobody pays for another's write-back.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.contest import Contest, Goal
from benchmarks.cost import PACKER, Cost, cost_of_command
from benchmarks.disk import flush, remove
from benchmarks.page_cache import cached_share, drop_everything, evict
from benchmarks.tree import Tree
from packer.bench import in_turns
from readers.registry import FORMATS

TAR, COPY = "tar cf", "cp -r"
_WARM_GOAL, _COLD_GOAL = 0.7, 0.9
_PEERS = {
    "lmdb, put in a loop": ("lmdb", "benchmarks.peers.lmdb_loop"),
    "webdataset.TarWriter": ("webdataset", "benchmarks.peers.webdataset_writer"),
    "h5py, variable length": ("h5py", "benchmarks.peers.h5py_vlen"),
}
_FORMATS = tuple(name for name, entry in FORMATS.items() if entry.encoded)
_LOOKED_AT = 200


def pack(tree: Tree, place: Path, *, rounds: int, cold: bool) -> Iterator[Contest]:
    """Holds the contest with a warm cache, and with a cold one if asked."""
    yield _contest(tree, place, rounds, "warm")
    if cold:
        yield _contest(tree, place, rounds, "cold")


def _contest(tree: Tree, place: Path, rounds: int, cache: str) -> Contest:
    output = place / "packed"
    shares: list[float] = []
    emptied: set[bool] = set()

    def turn(command: Sequence[str]) -> Cost:
        flush()
        if cache == "cold":
            evict(tree.paths)
            emptied.add(drop_everything())
        shares.append(cached_share(tree.paths[:: max(1, len(tree.paths) // _LOOKED_AT)]))
        try:
            return cost_of_command(command)
        finally:
            remove(output)

    commands = _commands(tree.root, output)
    costs = in_turns(
        {name: partial(turn, command) for name, command in commands.items()},
        rounds,
    )
    baseline, bound = (TAR, _WARM_GOAL) if cache == "warm" else (COPY, _COLD_GOAL)
    remarks = [f"{statistics.mean(shares):.1%} of the input in the page cache when a turn began"]
    if cache == "cold":
        remarks.append(
            "inodes and directory entries cold too"
            if all(emptied)
            else "inodes and directory entries warm: only root can drop them"
        )
    return Contest(
        title=f"pack, {cache} cache",
        cache=cache,
        samples=len(tree.paths),
        nbytes=tree.nbytes,
        costs=costs,
        baselines=(TAR, COPY),
        goals=tuple(Goal(_packer(name), "ratio", bound, baseline) for name in _FORMATS),
        remarks=tuple(remarks),
    )


def _packer(format: str) -> str:
    return f"packer, {format}"


def _commands(tree: Path, output: Path) -> dict[str, Sequence[str]]:
    commands: dict[str, Sequence[str]] = {
        TAR: ("tar", "-C", str(tree.parent), "-cf", str(output), tree.name),
        COPY: ("cp", "-r", str(tree), str(output)),
    }
    for name in _FORMATS:
        convert = (*PACKER, "convert", "-q", str(tree), str(output), "--format", name)
        commands[_packer(name)] = convert
    for name, (library, module) in _PEERS.items():
        if importlib.util.find_spec(library) is not None:
            commands[name] = (sys.executable, "-m", module, str(tree), str(output))
    return commands
