"""`packer monitor`: looks at a loader while it runs, and at what was measured afterwards."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from packer.commands.monitor_exports import report, serve, trace
from packer.commands.monitor_probes import io, stacks
from packer.commands.parameters import ByteSize, as_json, place
from packer.commands.recordings import load, load_all
from readers.monitor.diagnosis import diagnose, headline
from readers.monitor.figures import Figures
from readers.monitor.gate import GateLimits, gate_text, judge
from readers.monitor.live import live_text
from readers.monitor.recording import Recording
from readers.monitor.report import report_text
from readers.monitor.run import read_run
from readers.monitor.summary import summarize as summary_of
from readers.monitor.thresholds import Thresholds
from readers.monitor.what_if import Change, Prediction, predict, usual_changes
from readers.monitor.window import last as last_of
from readers.monitor.window import of_epoch
from readers.monitor.worker_count import Machine, worker_count

_LIMITS = GateLimits()
_CLEAR = "\x1b[H\x1b[2J"


@click.group()
def monitor() -> None:
    """Look at what a data loader does, while it runs or afterwards."""


@monitor.command()
@click.argument("run", type=place)
@click.option("--once", is_flag=True, help="Look once, then end.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    help="Seconds between two looks.",
)
@click.option(
    "--last", type=click.IntRange(min=1), default=200, show_default=True, help="Batches to look at."
)
@as_json
def top(run: Path, *, once: bool, every: float, last: int, as_json: bool) -> None:
    """Show the loader of the directory RUN as it is now, again and again."""
    while True:
        window = last_of(read_run(run), last)
        if as_json:
            seen = _summary_json(window) | {
                "workers": [asdict(state) for state in window.workers],
            }
            click.echo(json.dumps(seen))
        else:
            click.echo((_CLEAR if sys.stdout.isatty() and not once else "") + live_text(window))
        if once:
            return
        time.sleep(every)


@monitor.command()
@click.argument("run", type=place)
@click.option("--epoch", type=click.IntRange(min=0), help="That epoch only.")
@click.option("--last", type=click.IntRange(min=1), help="The last batches only, so many.")
@as_json
def summarize(run: Path, *, epoch: int | None, last: int | None, as_json: bool) -> None:
    """Give means, percentiles, rates and the verdict of RUN: a run, a recording or a log."""
    recording = load(run)
    if epoch is not None:
        recording = of_epoch(recording, epoch)
    if last is not None:
        recording = last_of(recording, last)
    if as_json:
        click.echo(json.dumps(_summary_json(recording), indent=1))
    else:
        click.echo(report_text(recording))


@monitor.command()
@click.argument("base", type=place)
@click.argument("new", type=place)
@click.option(
    "--cpu",
    type=click.FloatRange(min=0),
    default=_LIMITS.cpu,
    show_default=True,
    help="Largest rise of the CPU time a sample, as a share.",
)
@click.option(
    "--throughput",
    type=click.FloatRange(0, 1),
    default=_LIMITS.throughput,
    show_default=True,
    help="Largest fall of the throughput, as a share.",
)
@click.option(
    "--runs-at-least",
    type=click.IntRange(min=1),
    default=_LIMITS.runs_at_least,
    show_default=True,
    help="Runs of either side without which nothing is judged.",
)
@as_json
def gate(
    base: Path, new: Path, *, cpu: float, throughput: float, runs_at_least: int, as_json: bool
) -> None:
    """Fail with status 1 if the runs of NEW are worse than those of BASE.

    Either is a folder of runs, best taken in turns, or a single run. Their medians are compared.
    """
    limits = GateLimits(cpu=cpu, throughput=throughput, runs_at_least=runs_at_least)
    result = judge(load_all(base), load_all(new), limits)
    if as_json:
        click.echo(json.dumps({"passed": result.passed} | asdict(result), indent=1))
    else:
        click.echo(gate_text(result))
    if not result.passed:
        sys.exit(1)


@monitor.command("what-if")
@click.argument("run", type=place)
@click.option("--workers", type=click.IntRange(min=0), help="With so many workers.")
@click.option("--storage", type=float, default=1.0, help="With storage so many times as fast.")
@click.option("--pixels", type=float, default=1.0, help="With so much of the images' pixels.")
@click.option("--decoded", is_flag=True, help="With a cache of decoded pixels.")
@click.option("--iops", type=float, help="Reads a second that the storage gives, for the advice.")
@click.option("--free-memory", type=ByteSize(), help="Memory for more workers, for the advice.")
@as_json
def what_if(
    run: Path,
    *,
    workers: int | None,
    storage: float,
    pixels: float,
    decoded: bool,
    iops: float | None,
    free_memory: int | None,
    as_json: bool,
) -> None:
    """Predict what a change gives, and how many workers RUN needs; without options, the usual ones.

    Means are what is reckoned with: a step takes as long as the slowest of computing, making a
    batch shared among the workers, and the cores.
    """
    if storage <= 0 or pixels <= 0:
        raise click.UsageError("--storage and --pixels must be over 0")
    recording = load(run)
    change = Change(workers=workers, storage=storage, pixels=pixels, decoded=decoded)
    changes = usual_changes(recording) if change == Change() else [change]
    predictions = predict(recording, changes)
    machine = Machine(iops=iops, free_memory=free_memory)
    count = worker_count(Figures(recording, Thresholds()), machine)
    if as_json:
        found = {
            "predictions": [asdict(prediction) for prediction in predictions],
            "workers": None
            if count is None
            else {"advised": count.workers, "binding": count.binding, "why": count.why},
        }
        click.echo(json.dumps(found, indent=1))
        return
    click.echo("\n".join(_prediction_text(prediction) for prediction in predictions))
    if count is not None:
        click.echo(f"advice: {count.workers} workers ({count.why})")


for command in (report, trace, serve, stacks, io):
    monitor.add_command(command)


def _summary_json(recording: Recording) -> dict[str, Any]:
    return {
        "verdict": headline(recording),
        **asdict(summary_of(recording)),
        "findings": [asdict(finding) for finding in diagnose(recording)],
    }


def _prediction_text(prediction: Prediction) -> str:
    return (
        f"{prediction.change:36}{prediction.samples_per_second:10,.1f} samples/s"
        f"{prediction.factor:7.2f} x   bound by {prediction.bound_by}"
    )
