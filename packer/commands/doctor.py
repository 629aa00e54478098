"""`packer doctor`: what is the matter with a loader."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from packer.commands.monitor_probes import stack_text
from packer.commands.parameters import as_json, place
from packer.commands.recordings import goes_on, load
from readers.monitor.diagnosis import diagnose, headline
from readers.monitor.report import verdict_text
from readers.monitor.window import last as last_of


@click.command()
@click.argument("run_or_log", type=place)
@click.option("--last", type=click.IntRange(min=1), help="Judge the last batches only, so many.")
@as_json
def doctor(run_or_log: Path, *, last: int | None, as_json: bool) -> None:
    """Say what is the matter with the loader of RUN_OR_LOG, by which numbers, and what to do.

    RUN_OR_LOG is the directory of a run, its recording, or a log of any style.
    """
    recording = load(run_or_log)
    if last is not None:
        recording = last_of(recording, last)
    findings = diagnose(recording)
    stuck = [str(finding.evidence["pid"]) for finding in findings if finding.rule == "stuck"]
    stacks = {pid: stack_text(int(pid)) for pid in stuck if goes_on(run_or_log)}
    if as_json:
        found = {
            "verdict": headline(recording),
            "findings": [asdict(finding) | {"gain": finding.gain} for finding in findings],
            "stacks": stacks,
        }
        click.echo(json.dumps(found, indent=1))
        return
    click.echo(verdict_text(recording, findings))
    for stack in stacks.values():
        click.echo(stack)
    if not findings:
        click.echo("nothing found")
