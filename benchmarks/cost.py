"""What a piece of work cost, in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).parent.parent
"""Where processes run, so that they find this package."""
PACKER = (sys.executable, "-c", "from packer.cli import main; main()")
"""The `packer` command of this interpreter."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one turn of a contestant took."""

    seconds: float
    """By the wall clock."""
    cpu: float
    """Seconds of all threads, in user and kernel mode."""
    peak: int | None = None
    """Largest resident memory, bytes; None where it wasn't looked at."""

    def times(self, factor: float, *, at_once: int = 1) -> Cost:
        """Gives the cost of so many times the work, done by so many at once at no loss."""
        return Cost(self.seconds * factor / at_once, self.cpu * factor, self.peak)


def cost_of(work: Callable[[], object]) -> Cost:
    """Does the work in this process; what it returns is let go after the clock has stopped."""
    cpu, began = time.process_time(), time.perf_counter()
    result = work()
    cost = Cost(time.perf_counter() - began, time.process_time() - cpu)
    del result
    return cost


def cost_of_command(command: Sequence[str]) -> Cost:
    """Runs a command to its end, the start of its interpreter included.

    Raises:
        click.ClickException: It failed.
    """
    # Installed packages have their bytecode; a checkout gets it in the round that doesn't count.
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            said = output.read().decode(errors="replace").strip()
            raise click.ClickException(f"{' '.join(command)} failed: {said}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime)
