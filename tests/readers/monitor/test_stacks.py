"""A process tells where it stands when it is asked, without py-spy, and no other one is hurt."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from packer.commands.monitor import monitor as command
from readers import MonitoredLoader
from readers.loader import WorkerKind
from readers.monitor import LoaderMonitor
from readers.monitor.run import read_run
from readers.monitor.stacks import SIGNAL, ask


class Waiting:
    """A source whose last sample comes when a file is there."""

    def __init__(self, enough: Path) -> None:
        self.enough = enough

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        return index if index < 7 else waiting_here(self.enough)


def waiting_here(enough: Path) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not enough.exists():
        time.sleep(0.01)
    return 7


@pytest.mark.parametrize("kind", ["thread", "fork", "forkserver", "spawn"])
def test_a_worker_tells_where_it_stands(
    kind: WorkerKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # no py-spy
    monitor = LoaderMonitor(run=tmp_path / "run")
    loader = MonitoredLoader(
        Waiting(tmp_path / "enough"), 1, workers=1, worker_kind=kind, monitor=monitor
    )
    with loader:
        batches = iter(loader)
        assert [int(next(batches)[0]) for _ in range(7)] == list(range(7))
        (worker,) = read_run(tmp_path / "run").workers
        deadline = time.monotonic() + 20
        said: str | None = ""
        while "in waiting_here" not in (said or "") and time.monotonic() < deadline:
            said = ask(worker.pid)
        assert said is not None
        assert "in waiting_here" in said
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", str(tmp_path / "python"))
            shown = CliRunner().invoke(command, ["stacks", str(worker.pid)])
        assert "as it says itself" in shown.output
        assert "in waiting_here" in shown.output
        (tmp_path / "enough").touch()
        assert int(next(batches)[0]) == 7
    monitor.close()


def test_a_process_that_does_not_listen_lives_on() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert ask(process.pid) is None
        assert process.poll() is None
        process.communicate(b"\n")
    assert process.returncode == 0


def test_a_process_that_is_gone_says_nothing() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert ask(process.pid) is None


def test_a_signal_of_the_user_stays_the_users(tmp_path: Path) -> None:
    program = f"""
import os, signal, sys
signal.signal({int(SIGNAL)}, lambda *_: print("mine", flush=True))
from readers.monitor.clock_source import ClockSource, ToldByFramework
ClockSource({str(tmp_path)!r}, ToldByFramework("none"), True).begin()
os.kill(os.getpid(), {int(SIGNAL)})
"""
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    assert said == "mine\n"
