"""A contestant that is a process of its own, and makes batches when it is its turn."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import click
from typing_extensions import Self

from benchmarks.cost import ROOT, Cost
from benchmarks.disk import remove
from benchmarks.pipelines.serving import First, Lap, Turn
from benchmarks.pipelines.task import Task

PEERS = "peers"
"""Stands for all peers in the choice of interpreters."""
_PACKAGE = "benchmarks.pipelines"
MODULES = tuple(
    path.stem
    for path in sorted((Path(__file__).parent / "pipelines").glob("[!_]*.py"))
    if "__main__" in path.read_text(encoding="utf-8")
)
"""The scripts of that package."""
_SAID = 2000
_PATIENCE = 300.0
"""Seconds without an answer after which a contestant has failed."""
_LAST_WORDS = 30.0
_LOOK = 1.0
_Answer = TypeVar("_Answer", First, Lap)


@dataclass(frozen=True, slots=True)
class Script:
    """A module of `benchmarks.pipelines` and how its input is prepared."""

    module: str
    options: tuple[str, ...] | None = ()
    """Of `prepare`; None for one that reads the folder."""
    peer: bool = False
    """Whether it is of somebody else's library, which may be missing."""
    maker: str | None = None
    """The module that prepares the input, if it is another."""


@dataclass(frozen=True, slots=True)
class Interpreters:
    """Which interpreter runs which module of `benchmarks.pipelines`."""

    chosen: Mapping[str, str] = field(default_factory=dict)
    """Paths by module; under `PEERS` that for all peers which aren't named."""

    def of(self, script: Script) -> str:
        """Gives the path of an interpreter, which is our own unless another was chosen."""
        others = self.chosen.get(PEERS, sys.executable) if script.peer else sys.executable
        return self.chosen.get(script.module, others)

    def check(self, script: Script) -> None:
        """Sees whether a script can be imported.

        Raises:
            click.ClickException: It can't.
        """
        done = _done([self.of(script), "-c", f"import {_PACKAGE}.{script.module}"])
        if done.returncode:
            raise click.ClickException(done.stderr.strip() or f"can't import {script.module}")


class Pantry:
    """Prepared inputs, each made once.

    Args:
        place: Where they are made.
        interpreters: Which ones make them.
    """

    def __init__(self, place: Path, interpreters: Interpreters) -> None:
        self._place = place
        self._interpreters = interpreters
        self._made: dict[tuple[Path, str, tuple[str, ...]], Path] = {}

    def prepare(self, tree: Path, script: Script) -> Path:
        """Gives what a script reads, made of a folder.

        Raises:
            click.ClickException: It can't be made.
        """
        if script.options is None:
            return tree
        maker = script.maker or script.module
        key = (tree, maker, script.options)
        if key not in self._made:
            output = self._place / f"{len(self._made)}-{maker}"
            command = (self._interpreters.of(script), "-m", f"{_PACKAGE}.{maker}", "prepare")
            done = _done([*command, str(tree), str(output), *script.options])
            if done.returncode:
                raise click.ClickException(f"{maker} prepare failed: {done.stderr[-_SAID:]}")
            self._made[key] = output
        return self._made[key]

    def clear(self) -> None:
        """Removes them all."""
        for path in self._place.iterdir():
            remove(path)
        self._made.clear()


class Contestant:
    """A pipeline in a process group of its own, which is stopped while others have their turns.

    It stays in the middle of its work that way: batches that were being made go on being made in
    the next turn, and none are made meanwhile. If the benchmark is killed, the kernel ends the
    group, which is orphaned then: a session of its own would stay stopped for ever.

    Args:
        script: What it runs.
        interpreter: Runs it.
        task: What it makes.
        turn: What it does in a turn.
    """

    def __init__(self, script: Script, interpreter: str, task: Task, turn: Turn) -> None:
        self.first: First | None = None
        self.first_batch = 0.0
        """Seconds from the start of the interpreter to the first batch."""
        self.laps: list[Lap] = []
        self._script = script
        self._interpreter = interpreter
        self.task = task
        self._turn = turn
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process

    def turn(self) -> Cost:
        """Has its turn; the first one starts it, and ends with the first batch.

        Raises:
            click.ClickException: It failed.
        """
        if self._process is None:
            began = time.perf_counter()
            self._process = self._start()
            self.first = self._answer(First)
            self.first_batch = time.perf_counter() - began
            self._signal(signal.SIGSTOP)
            return Cost(self.first_batch, 0)
        self._signal(signal.SIGCONT)
        with contextlib.suppress(OSError):  # what it has to say about its end, the answer tells
            if self._connection is not None:
                self._connection.send(asdict(self._turn))
        lap = self._answer(Lap)
        self._signal(signal.SIGSTOP)
        self.laps.append(lap)
        return Cost(lap.seconds / lap.images, lap.cpu / lap.images)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Ends the process, and whatever is left of its group."""
        if self._process is not None and self._connection is not None:
            self._connection.close()
            self._signal(signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LAST_WORDS)
            self._signal(signal.SIGKILL)
            self._process.wait()
        self._errors.close()

    def _start(self) -> subprocess.Popen[bytes]:
        own, other = socket.socketpair()
        task = json.dumps(asdict(self.task))
        module = f"{_PACKAGE}.{self._script.module}"
        with other:
            process = subprocess.Popen(
                (self._interpreter, "-m", module, "run", str(other.fileno()), task),
                cwd=ROOT,
                pass_fds=(other.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                preexec_fn=os.setpgrp,  # noqa: PLW1509 - `process_group` is of Python 3.11
            )
        self._connection = Connection(own.detach())
        return process

    def _answer(self, kind: type[_Answer]) -> _Answer:
        deadline = time.monotonic() + _PATIENCE
        while self._connection is not None and self._process is not None:
            with contextlib.suppress(EOFError):
                if self._connection.poll(_LOOK):
                    return kind(**self._connection.recv())
            if self._process.poll() is not None or time.monotonic() > deadline:
                break
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()
        raise click.ClickException(f"{self._script.module} failed: {said[-_SAID:]}")

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


def _done(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        check=False,
        text=True,
        capture_output=True,
    )
