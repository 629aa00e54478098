"""The command: `python -m benchmarks --help`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from benchmarks import decode, loading, memory, overhead, pack, read, verify
from benchmarks.contest import Contest
from benchmarks.environment import environment
from benchmarks.report import draw, put_into, table_of
from benchmarks.result import RESULTS, Result, load
from benchmarks.tree import Tree, made_tree, open_tree

_MADE_FILES = 10_000
_LEAST_ROUNDS = 5
_Benchmark = Callable[[Tree, Path, int, bool], Iterator[Contest]]

BENCHMARKS: dict[str, _Benchmark] = {
    "pack": lambda tree, place, rounds, cold: pack.pack(tree, place, rounds=rounds, cold=cold),
    "read": lambda tree, place, rounds, _: read.read(tree, place, rounds=rounds),
    "decode": lambda tree, place, rounds, _: decode.decode(tree, place, rounds=rounds),
    "verify": lambda tree, place, rounds, _: verify.verify(tree, place, rounds=rounds),
    "memory": lambda tree, place, *_: memory.memory(tree, place),
    "loader": lambda tree, place, rounds, _: loading.loading(tree, place, rounds=rounds),
    "overhead": lambda tree, place, rounds, _: overhead.overhead(tree, place, rounds=rounds),
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
    readme: tuple[Path, ...],
) -> None:
    """Measure one thing or all, or report what was measured.

    Results are kept in benchmarks/results/, one JSON file a benchmark.
    """
    if name == "report":
        _report(readme)
        return
    tree = made_tree(place, files) if root is None else open_tree(root)
    for chosen in BENCHMARKS if name == "all" else (name,):
        with tempfile.TemporaryDirectory(dir=place, prefix="benchmark-") as directory:
            facts = environment(tree.root, place)
            contests = []
            for contest in BENCHMARKS[chosen](tree, Path(directory), rounds, cold):
                click.echo(table_of(contest))
                contests.append(contest)
        result = Result(chosen, facts, tuple(contests))
        click.echo(f"written to {result.save()}", err=True)


def _report(pages: tuple[Path, ...]) -> None:
    results = [result for name in BENCHMARKS if (result := load(name)) is not None]
    for result in results:
        for contest in result.contests:
            click.echo(table_of(contest))
    for page in pages:
        put_into(page, results)
    draw(results, RESULTS / "ratios.png")


main()
