"""Progress on stderr: a bar on a terminal, else a plain line every few seconds."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType

import click
from typing_extensions import Self

from packer.progress import Progress

_SECONDS_BETWEEN_LINES = 5.0
_BAR = 16


class Display:
    """Shows progress until it is left."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._drawn = False
        self._phase = ""
        self._shown = 0.0

    def say(self, text: str) -> None:
        """Prints a line."""
        if not self._quiet:
            self._wipe()
            click.echo(text, err=True)

    def result(self, text: str) -> None:
        """Prints a line on stdout, below what is drawn."""
        self._wipe()
        click.echo(text)

    def __call__(self, progress: Progress) -> None:
        """Shows a report."""
        if self._quiet:
            return
        now = time.monotonic()
        if self._terminal:
            self._wipe()
            click.echo(_fitted(f"{_bar(progress)} {describe(progress)}"), err=True, nl=False)
            self._drawn = True
        elif progress.phase != self._phase or now - self._shown >= _SECONDS_BETWEEN_LINES:
            click.echo(describe(progress), err=True)
            self._shown = now
        self._phase = progress.phase

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self._wipe()

    def _wipe(self) -> None:
        if self._drawn:
            click.echo("\r\x1b[2K", err=True, nl=False)
            self._drawn = False


def describe(progress: Progress) -> str:
    """Puts a report into a line: how many of how many, rates, and when it will be done."""
    parts = [f"{progress.phase} {progress.done:,} of {progress.total:,}"]
    fresh = progress.done - progress.resumed
    if fresh and progress.seconds:
        rate = fresh / progress.seconds
        parts.append(f"ETA {clock((progress.total - progress.done) / rate)}")
        parts.append(f"{rate:,.0f} samples/s")
        if progress.nbytes:
            parts.append(f"{progress.nbytes / progress.seconds / 1e6:,.0f} MB/s")
    elif progress.resumed:
        parts.append("going on with an unfinished run")
    return ", ".join(parts)


def number(count: int, thing: str) -> str:
    """Writes a count with what is counted: 1 shard, 2,000 shards, 2 classes."""
    plural = "es" if thing.endswith("s") else "s"
    return f"{count:,} {thing}{'' if count == 1 else plural}"


def clock(seconds: float) -> str:
    """Writes a time as h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def size(nbytes: float) -> str:
    """Writes a number of bytes in decimal units."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(nbytes) < 1000:  # noqa: PLR2004 - decimal units
            return f"{nbytes:,.0f} {unit}" if unit == "bytes" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:,.1f} TB"


def _bar(progress: Progress) -> str:
    share = progress.done / progress.total if progress.total else 0.0
    filled = round(share * _BAR)
    return f"[{'#' * filled}{'.' * (_BAR - filled)}] {share:4.0%}"


def _fitted(text: str) -> str:
    return text[: shutil.get_terminal_size().columns - 1]
