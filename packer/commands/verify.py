"""`packer verify`: proves a dataset whole, and equal to its source."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from packer.commands.display import Display, size
from packer.commands.parameters import as_json, existing, list_options, place, quiet, workers
from packer.compare import compare
from packer.fault import Fault
from packer.sources.opening import open_source
from packer.verify import verify as verify_dataset
from readers.opening import open_dataset


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
    """Read every byte of DATASET and hold it against its checksums."""
    with Display(quiet=quiet) as display:
        report = verify_dataset(dataset, workers=workers, on_progress=display)
        faults = list(report.faults)
        compared = None
        if against is not None and not faults:
            display.say(f"look through {against}")
            with open_dataset(dataset) as opened:
                source = open_source(
                    against,
                    root=root,
                    path_column=path_column,
                    label_column=label_column,
                    classes=opened.classes or None,
                )
                result = compare(opened, source, workers=workers, on_progress=display)
            compared = result.samples
            faults += result.faults
    if as_json:
        found = {
            "dataset": str(dataset),
            "whole": not faults,
            "samples": report.samples,
            "compared": compared,
            "bytes": report.nbytes,
            "seconds": report.seconds,
            "faults": [asdict(fault) for fault in faults],
        }
        click.echo(json.dumps(found, indent=1))
    else:
        _print(dataset, report.samples, report.nbytes, report.seconds, faults)
        if against is not None and not faults:
            click.echo(f"equal to {against}: {compared:,} samples compared")
    if faults:
        sys.exit(1)


def _print(dataset: Path, samples: int, nbytes: int, seconds: float, faults: list[Fault]) -> None:
    if not faults:
        rate = size(nbytes / seconds) if seconds else "?"
        click.echo(f"{dataset} is whole: {samples:,} samples, {size(nbytes)} read at {rate}/s")
        return
    for fault in faults:
        click.echo(str(fault))
    click.echo(f"{dataset} is damaged: {len(faults)} faults; restore it or pack it again")
