"""The directory of a run, and the monitor around anything that gives batches."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readers import MonitoredLoader
from readers.errors import CorruptDatasetError, DatasetBusyError, DatasetNotFoundError, OptionError
from readers.monitor import LoaderMonitor
from readers.monitor.run import read_run
from tests.planted import agree, pause


def test_anything_that_gives_batches_has_its_steps_timed() -> None:
    monitor = LoaderMonitor(window=2)
    planted: list[int] = []

    class Batches:
        def __iter__(self) -> Any:  # noqa: ANN401
            for _ in range(4):
                planted.append(pause(0.01))
                yield {"images": np.zeros((5, 2)), "labels": np.zeros(5)}

        def __len__(self) -> int:
            return 4

    loader = monitor.attach(Batches())
    computed = [pause(0.02) for _ in loader]
    recording = monitor.recording()
    assert (len(loader), recording.facts.framework, recording.facts.length) == (4, "iterable", 4)
    assert [step.samples for step in recording.steps] == [5] * 4
    assert agree([step.wait for step in recording.steps], planted)
    assert agree([step.compute for step in recording.steps], computed)
    assert len(monitor.snapshot().steps) == 2
    monitor.close()


def test_a_run_that_is_given_stays_and_is_whole(tmp_path: Path) -> None:
    run = tmp_path / "run"
    monitor = LoaderMonitor(run=run, keep=4)
    loader = monitor.attach(range(6))
    assert list(loader) == list(range(6))
    with pytest.raises(DatasetBusyError, match="give each its own directory"):
        LoaderMonitor(run=run)
    assert [step.step for step in read_run(run).steps] == list(range(6))
    monitor.close()
    monitor.close()
    recording = read_run(run)
    assert [step.step for step in recording.steps] == [2, 3, 4, 5]
    assert recording.facts.length == 6
    LoaderMonitor(run=run).close()


@pytest.mark.parametrize(
    "options", [{"window": 0}, {"keep": 0}, {"memory_every": 0}, {"log": print, "every": 0}]
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        LoaderMonitor(**options)


def test_no_run_and_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"facts\.json"):
        read_run(tmp_path)
    (tmp_path / "facts.json").write_text('{"workers": 3}')
    with pytest.raises(CorruptDatasetError, match="facts of a loader"):
        read_run(tmp_path)


SCRIPT = """
import os, signal, sys, tempfile
tempfile.tempdir = sys.argv[1]
from readers.monitor import LoaderMonitor
loader = LoaderMonitor().attach(range(4))
for batch in loader:
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[2] == "forked" and not os.fork():
        sys.exit(0)
    assert loader.monitor.directory.exists()
if sys.argv[2] == "failed":
    raise SystemExit(3)
"""


@pytest.mark.parametrize(
    ("end", "status"), [("ended", 0), ("failed", 3), ("forked", 0), ("killed", -9)]
)
def test_nothing_is_left_behind(tmp_path: Path, end: str, status: int) -> None:
    script = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path), end]
    assert subprocess.run(script, check=False, timeout=60).returncode == status
    left = list(tmp_path.glob("packer-monitor-*"))
    assert len(left) == (end == "killed")


def test_what_a_killed_process_left_goes_away_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    script = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path), "killed"]
    subprocess.run(script, check=False, timeout=60)
    living = LoaderMonitor()
    (left,) = set(tmp_path.glob("packer-monitor-*")) - {living.directory}
    LoaderMonitor().close()
    assert left.exists(), "one that was made just now may be about to be locked"
    for path in (left, living.directory):
        os.utime(path, (time.time() - 3600, time.time() - 3600))
    LoaderMonitor().close()
    assert (left.exists(), living.directory.exists()) == (False, True)
    living.close()


def test_a_closed_monitor_measures_nothing_and_takes_no_loader(tmp_path: Path) -> None:
    monitor = LoaderMonitor(run=tmp_path)
    with MonitoredLoader(range(12), 4, workers=1, monitor=monitor) as loader:
        first = iter(loader)
        next(first)
        monitor.close()
        assert sum(len(batch) for batch in first) == 8, "the pass goes on"
        assert sum(len(batch) for batch in loader) == 12
        assert len(loader.recording().steps) <= 3
    assert monitor.failures == 0
    with pytest.raises(OptionError, match="was closed"):
        monitor.attach([1])
