"""The command: `python -m benchmarks --help`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks import decode, loading, memory, overhead, pack, pipeline, read, verify
from benchmarks.contest import Contest
from benchmarks.contestant import MODULES, PEERS, Interpreters
from benchmarks.environment import environment
from benchmarks.report import draw, put_into, table_of
from benchmarks.result import RESULTS, Result, load
from benchmarks.tree import Tree, made_tree, open_tree

_MADE_FILES = 10_000
_LEAST_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class _Options:
    rounds: int
    cold: bool
    pipeline: pipeline.Plan


_Benchmark = Callable[[Tree, Path, _Options], Iterator[Contest]]

BENCHMARKS: dict[str, _Benchmark] = {
    "pack": lambda tree, place, how: pack.pack(tree, place, rounds=how.rounds, cold=how.cold),
    "read": lambda tree, place, how: read.read(tree, place, rounds=how.rounds),
    "decode": lambda tree, place, how: decode.decode(tree, place, rounds=how.rounds),
    "verify": lambda tree, place, how: verify.verify(tree, place, rounds=how.rounds),
    "memory": lambda tree, place, _: memory.memory(tree, place),
    "loader": lambda tree, place, how: loading.loading(tree, place, rounds=how.rounds),
    "overhead": lambda tree, place, how: overhead.overhead(tree, place, rounds=how.rounds),
    "pipeline": lambda tree, place, how: pipeline.pipeline(tree, place, how.pipeline),
}


@click.command()
@click.argument("name", type=click.Choice([*BENCHMARKS, "all", "report"]))
@click.option(
    "--tree",
    "root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of class folders to measure on; otherwise pictures are made.",
)
@click.option(
    "--files",
    type=click.IntRange(min=1),
    default=_MADE_FILES,
    show_default=True,
    help="Pictures to make, of some 110 kB.",
)
@click.option(
    "--rounds", type=click.IntRange(min=_LEAST_ROUNDS), default=_LEAST_ROUNDS, show_default=True
)
@click.option(
    "--place",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    default=tempfile.gettempdir(),
    show_default=True,
    help="Where pictures are made and datasets written: the storage that is measured.",
)
@click.option("--cold", is_flag=True, help="pack: once more with the input not in the page cache.")
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="NAME=PATH",
    help="pipeline: another interpreter for a module of benchmarks/pipelines; NAME may be `peers`.",
)
@click.option(
    "--contest",
    "contests",
    type=click.Choice(list(pipeline.CONTESTS)),
    multiple=True,
    help="pipeline: hold this one only; its result is shown, and not kept.",
)
@click.option(
    "--pictures",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    help="pipeline: folder for the first pictures that each contestant makes, to be looked at.",
)
@click.option(
    "--readme",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="report: page in which the tables are renewed, between <!-- benchmark:NAME --> and "
    "<!-- /benchmark:NAME -->.",
)
def main(
    *,
    name: str,
    root: Path | None,
    files: int,
    rounds: int,
    place: Path,
    cold: bool,
    pythons: tuple[str, ...],
    contests: tuple[str, ...],
    pictures: Path | None,
    readme: tuple[Path, ...],
) -> None:
    """Measure one thing or all, or report what was measured.

    Results are kept in benchmarks/results/, one JSON file a benchmark.
    """
    if name == "report":
        _report(readme)
        return
    plan = pipeline.Plan(rounds, _interpreters(pythons), contests, samples=pictures)
    options = _Options(rounds, cold, plan)
    tree = made_tree(place, files) if root is None else open_tree(root)
    for chosen in BENCHMARKS if name == "all" else (name,):
        with tempfile.TemporaryDirectory(dir=place, prefix="benchmark-") as directory:
            facts = environment(tree.root, place)
            held = []
            for contest in BENCHMARKS[chosen](tree, Path(directory), options):
                click.echo(table_of(contest))
                held.append(contest)
        if contests and chosen == "pipeline":
            continue
        result = Result(chosen, facts, tuple(held))
        click.echo(f"written to {result.save()}", err=True)


def _interpreters(chosen: Sequence[str]) -> Interpreters:
    pairs = [pair.partition("=") for pair in chosen]
    for name, _, path in pairs:
        if name not in (PEERS, *MODULES):
            raise click.BadParameter(f"{name} is none of {', '.join((PEERS, *MODULES))}")
        if shutil.which(path) is None:
            raise click.BadParameter(f"{name}: {path or 'nothing'} is no program that may be run")
    return Interpreters({name: path for name, _, path in pairs})


def _report(pages: tuple[Path, ...]) -> None:
    results = [result for name in BENCHMARKS if (result := load(name)) is not None]
    for result in results:
        for contest in result.contests:
            click.echo(table_of(contest))
    for page in pages:
        put_into(page, results)
    draw(results, RESULTS / "ratios.png")


main()
