"""`packer bench`: packs samples of a folder into every format and measures what that gains."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import click

from packer.bench import FOLDER, SIDE, BenchReport, Contestant, sample_tree
from packer.bench import bench as measure
from packer.commands.display import Display, size
from packer.commands.parameters import as_json, existing, place, quiet
from readers.registry import FORMATS

_SAMPLES = 500
_LEAST_ROUNDS = 5
_NO_GAIN = 1.1


@click.command()
@click.argument("source", type=existing, required=False)
@click.option(
    "--format",
    "formats",
    multiple=True,
    help=f"Formats to try, of {', '.join(FORMATS)}; may be repeated  [all that are installed]",
)
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=_SAMPLES,
    show_default=True,
    help="How many to take from SOURCE, evenly, or to make.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=_LEAST_ROUNDS),
    default=_LEAST_ROUNDS,
    show_default=True,
    help="Turns of each contestant; medians are shown.",
)
@click.option(
    "--keep",
    type=place,
    help="Directory to make the datasets in and leave them; on the storage to be tried.",
)
@as_json
@quiet
def bench(
    source: Path | None,
    *,
    formats: tuple[str, ...],
    samples: int,
    rounds: int,
    keep: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Pack samples of SOURCE into each format, verify them, and measure what reading gains.

    SOURCE is a folder of images. Without one, pictures like photographs are made.

    The measure is dataset_time: how long a training loop waits for a batch of random samples.
    """
    with ExitStack() as stack:
        workplace = keep
        if workplace is None:
            workplace = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        workplace.mkdir(parents=True, exist_ok=True)
        with Display(quiet=quiet) as display:
            folder = source
            if folder is None:
                display.say(f"make {samples:,} pictures")
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=workplace)))
                for _ in sample_tree(folder, samples):
                    pass
            report = measure(
                folder,
                workplace,
                formats=formats or tuple(_installed()),
                samples=samples,
                rounds=rounds,
                say=display.say,
                on_progress=display,
            )
    click.echo(json.dumps(asdict(report), indent=1) if as_json else _told(report))


def _installed() -> Iterator[str]:
    for name, entry in FORMATS.items():
        if all(find_spec(library) is not None for library in entry.needs):
            yield name


def _told(report: BenchReport) -> str:
    head = ("", "size", "packed at", "read a batch", "gain", f"to {SIDE} x {SIDE} pixels", "gain")
    rows = [head, *(_cells(report, contestant) for contestant in report.contestants)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([*lines, "", _meaning(report)])


def _cells(report: BenchReport, contestant: Contestant) -> tuple[str, ...]:
    seconds = contestant.pack_seconds
    return (
        contestant.name,
        size(contestant.nbytes),
        "" if seconds is None else f"{report.samples / seconds:,.0f}/s",
        _milliseconds(contestant.dataset_time),
        f"{report.gain(contestant):.2f}x",
        _milliseconds(contestant.decoded_dataset_time),
        f"{report.decoded_gain(contestant):.2f}x",
    )


def _milliseconds(rounds: tuple[float, ...]) -> str:
    return f"{statistics.median(rounds) * 1000:.2f} ms"


def _meaning(report: BenchReport) -> str:
    packed = report.contestants[1:]
    reading = max(packed, key=report.gain)
    decoding = max(packed, key=report.decoded_gain)
    systems = " and ".join(sorted(set(report.file_systems.values())))
    what_it_is = (
        f"One process waits that long for {report.batch} random samples of {report.samples:,}, "
        f"all verified whole; gain is against the {FOLDER}."
    )
    reservation = (
        f"All files were in the page cache, on {systems}: a cold disk or a network file system, "
        "where every file costs a round trip, gains more by packing than is seen here."
    )
    gains = (
        _best("Reading alone", reading.name, report.gain(reading)),
        _best("To pixels", decoding.name, report.decoded_gain(decoding)),
    )
    return " ".join((what_it_is, *gains, reservation))


def _best(what: str, name: str, gain: float) -> str:
    if gain < _NO_GAIN:
        return f"{what}, no format gains anything here."
    return f"{what}, {name} gains most: {gain:.1f} times as fast."
