"""How fast a dataset is proved whole, from a warm page cache."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.contest import Contest, Goal
from benchmarks.cost import PACKER, cost_of_command
from benchmarks.tree import Tree
from packer.bench import in_turns
from packer.convert import convert
from packer.sources.opening import open_source
from readers.registry import FORMATS

_BARE = "cat to /dev/null"
_VERIFY = "packer verify"
_GOAL = 1e9


def verify(tree: Tree, place: Path, *, rounds: int) -> Iterator[Contest]:
    """Holds a contest for each format that keeps the files as they are."""
    for name, entry in FORMATS.items():
        if not entry.encoded:
            continue
        path = place / f"verify.{name}"
        manifest = convert(open_source(tree.root), path, format=name)
        files = [file for shard in manifest.shards for file in shard.files]
        names = [str(path / file.name) for file in files]
        commands = {
            _BARE: ("sh", "-c", 'cat "$@" > /dev/null', "cat", *names),
            _VERIFY: (*PACKER, "verify", "-q", str(path)),
        }
        costs = in_turns(
            {who: partial(cost_of_command, command) for who, command in commands.items()}, rounds
        )
        yield Contest(
            title=f"verify {name}",
            cache="warm",
            samples=manifest.samples,
            nbytes=sum(file.bytes for file in files),
            costs=costs,
            baselines=(_BARE,),
            goals=(Goal(_VERIFY, "rate", _GOAL),),
            remarks=("whole commands, from the start of the interpreter",),
        )
