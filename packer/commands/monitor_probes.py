"""`packer monitor stacks` and `io`: py-spy and perf, where they are installed.

A process that a monitor measures tells itself where it stands if py-spy can't.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import click

from packer.commands.parameters import as_json
from readers.errors import MissingDependencyError
from readers.monitor.stacks import ask

process = click.argument("pid", type=click.IntRange(min=1))


@click.command()
@process
@click.option("--native", is_flag=True, help="Frames of C code too.")
@as_json
def stacks(pid: int, *, native: bool, as_json: bool) -> None:
    """Show where each thread of process PID stands.

    By py-spy; without it, a process that a loader monitor measures is asked itself.
    """
    options = ["--native"] * native + ["--json"] * as_json
    if options:
        click.echo(_by_py_spy(pid, options), nl=False)
    else:
        click.echo(_stacks(pid))


@click.command()
@process
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="How long to look.",
)
@as_json
def io(pid: int, *, seconds: float, as_json: bool) -> None:
    """Count the system calls of process PID and their times, by perf."""
    tool = _installed("perf", "apt install linux-perf (Debian), linux-tools-generic (Ubuntu)")
    click.echo(f"looking at process {pid} for {seconds:g} s", err=True)
    command = [tool, "trace", "--summary", "--pid", str(pid), "--", "sleep", str(seconds)]
    found = _output(command, "perf")
    text = found.stdout + found.stderr
    click.echo(
        json.dumps({"pid": pid, "seconds": seconds, "summary": text}) if as_json else text,
        nl=as_json,
    )


def stack_text(pid: int) -> str:
    """Gives the stacks of a process, or why they can't be had."""
    try:
        return _stacks(pid)
    except (MissingDependencyError, click.ClickException) as error:
        return f"where process {pid} stands can't be seen: {error}"


def _stacks(pid: int) -> str:
    try:
        return _by_py_spy(pid, []).rstrip()
    except (MissingDependencyError, click.ClickException):
        answer = ask(pid)
        if answer is None:
            raise
        return f"Process {pid}, as it says itself:\n{answer.rstrip()}"


def _by_py_spy(pid: int, options: list[str]) -> str:
    tool = _installed("py-spy", "pip install py-spy")
    return _output([tool, "dump", "--pid", str(pid), *options], "py-spy").stdout


def _installed(name: str, how: str) -> str:
    beside = Path(sys.executable).with_name(name)
    path = str(beside) if beside.exists() else shutil.which(name)
    if path is None:
        raise MissingDependencyError(f"{name} isn't installed: {how}")
    return path


def _output(command: list[str], name: str) -> subprocess.CompletedProcess[str]:
    # No shell, and the tool by its path.
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if found.returncode:
        said = (found.stderr or found.stdout).strip()
        raise click.ClickException(f"{name} failed (it needs the right to trace): {said}")
    return found
