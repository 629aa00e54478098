"""The input: a folder of class folders, the user's or a made one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import click

from packer.bench import sample_tree


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder of class folders, as far as the benchmarks need to know it."""

    root: Path
    paths: tuple[Path, ...]
    nbytes: int


def open_tree(root: Path) -> Tree:
    """Lists a tree.

    Raises:
        click.ClickException: There are no files in folders beneath it.
    """
    paths = tuple(sorted(path for path in root.glob("*/*") if path.is_file()))
    if not paths:
        raise click.ClickException(f"{root} holds no files in folders, one folder a class")
    return Tree(root.resolve(), paths, sum(path.stat().st_size for path in paths))


def made_tree(place: Path, files: int) -> Tree:
    """Makes a tree of so many pictures, unless an earlier run left it."""
    root = place / f"tree-{files}"
    if not root.is_dir():
        unfinished = place / f"tree-{files}.unfinished"
        with click.progressbar(
            sample_tree(unfinished, files), files, label=f"making {root}"
        ) as pictures:
            for _ in pictures:
                pass
        os.sync()
        unfinished.rename(root)
    return open_tree(root)


def part_of(tree: Tree, place: Path, files: int) -> Tree:
    """Makes a tree of links to the first files of another, taken evenly from its folders."""
    root = place / f"part-{files}"
    step = len(tree.paths) / files
    for number in range(files):
        path = tree.paths[int(number * step)]
        link = root / path.parent.name / path.name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.hardlink_to(path)
    return open_tree(root)
