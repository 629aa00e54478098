"""`packer verify`: proves a dataset whole, and equal to its source."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from packer.commands.display import Display, number, size
from packer.commands.parameters import as_json, existing, list_options, place, quiet, workers
from packer.compare import compare
from packer.sources.opening import open_source
from packer.verify import verify as verify_dataset
from readers.manifest import MANIFEST
from readers.opening import open_dataset
from readers.sample import JsonValue


@click.command()
@click.argument("dataset", type=place)
@click.option(
    "--against",
    type=existing,
    help="Also prove it equal to this: what it was packed from, or another dataset.",
)
@list_options
@workers
@as_json
@quiet
def verify(
    dataset: Path,
    *,
    against: Path | None,
    root: Path | None,
    path_column: str | None,
    label_column: str | None,
    workers: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Read every byte of DATASET and hold it against its checksums.

    A directory of splits is verified split by split.
    """
    results: list[dict[str, JsonValue]] = []
    splits = split_datasets(dataset)
    with Display(quiet=quiet) as display:
        for split in splits or ("",):
            result = _verified(dataset / split, workers, display)
            if against is not None and not result["faults"]:
                source = against / split if split and (against / split).exists() else against
                columns = {"root": root, "path_column": path_column, "label_column": label_column}
                result |= _compared(dataset / split, source, columns, workers, display)
            results.append(result)
            if not as_json:
                display.result(_told(result))
    if as_json:
        click.echo(json.dumps(results if splits else results[0], indent=1))
    if any(result["faults"] or result["differences"] for result in results):
        sys.exit(1)


def split_datasets(folder: Path) -> tuple[str, ...]:
    """Names the datasets that `packer convert` made of splits; none for a dataset itself."""
    if (folder / MANIFEST).exists():
        return ()
    return tuple(sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}")))


def _verified(dataset: Path, workers: int, display: Display) -> dict[str, JsonValue]:
    report = verify_dataset(dataset, workers=workers, on_progress=display)
    return {
        "dataset": str(dataset),
        "whole": not report.faults,
        "samples": report.samples,
        "bytes": report.nbytes,
        "seconds": report.seconds,
        "faults": [asdict(fault) | {"text": str(fault)} for fault in report.faults],
        "against": None,
        "compared": None,
        "differences": [],
    }


def _compared(
    dataset: Path, against: Path, columns: Mapping[str, Any], workers: int, display: Display
) -> dict[str, JsonValue]:
    display.say(f"look through {against}")
    with open_dataset(dataset) as opened:
        source = open_source(against, classes=opened.classes or None, **columns)
        found = compare(opened, source, workers=workers, on_progress=display)
    return {
        "against": str(against),
        "compared": found.samples,
        "differences": [asdict(fault) | {"text": str(fault)} for fault in found.faults],
    }


def _told(result: Mapping[str, Any]) -> str:
    dataset, faults = result["dataset"], result["faults"]
    if faults:
        lines = [fault["text"] for fault in faults]
        found = number(len(faults), "fault")
        return "\n".join([*lines, f"{dataset} is damaged: {found}; restore it or pack it again"])
    rate = size(result["bytes"] / result["seconds"]) if result["seconds"] else "?"
    whole = (
        f"{dataset} is whole: {number(result['samples'], 'sample')}, {size(result['bytes'])} read "
        f"at {rate}/s"
    )
    if result["against"] is None:
        return whole
    against, differences = result["against"], result["differences"]
    if not differences:
        equal = f"equal to {against}: {number(result['compared'], 'sample')} compared"
        return f"{whole}\n{equal}"
    lines = [difference["text"] for difference in differences]
    found = number(len(differences), "difference")
    return "\n".join([whole, *lines, f"{dataset} isn't equal to {against}: {found}"])
