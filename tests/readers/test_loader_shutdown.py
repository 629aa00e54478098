"""Our loader ends cleanly, at any moment and by any cause, and leaves nothing behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from readers.errors import WorkerDiedError
from readers.loader import MonitoredLoader, WorkerKind

_ROOT = Path(__file__).parents[2]
_SOON = 10.0

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def slowly(value: int) -> int:
    time.sleep(0.02)
    return value


def own_process(_: int) -> int:
    return os.getpid()


def die_at_5(value: int) -> int:
    if value == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return value


def leave_at_5(value: int) -> int:
    if value == 5:
        os._exit(3)
    return value


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def _working() -> int:
    return sum(thread.name.startswith("loader-") for thread in threading.enumerate())


def test_a_loop_that_is_left_ends_its_threads() -> None:
    loader = MonitoredLoader(list(range(1000)), 2, transform=slowly, workers=3)
    for _ in loader:
        assert _working() == 3
        break
    _wait_for(lambda: _working() == 0)

    def fail() -> None:
        for _ in loader:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    gc.collect()
    _wait_for(lambda: _working() == 0)


def test_an_iterator_that_is_forgotten_in_a_cycle_ends_its_threads() -> None:
    holder: list[object] = []
    batches = iter(MonitoredLoader(list(range(1000)), 2, transform=slowly, workers=2))
    next(batches)
    holder += [batches, holder]
    del batches, holder
    gc.collect()
    _wait_for(lambda: _working() == 0)


@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_processes_stay_between_epochs_and_end_with_the_loader(kind: WorkerKind) -> None:
    loader = MonitoredLoader(list(range(8)), 1, transform=own_process, workers=2, worker_kind=kind)
    first, second = ({int(batch[0]) for batch in loader} for _ in range(2))
    assert first | second
    assert len(first | second) <= 2
    assert not any(_is_gone(pid) for pid in first | second)
    del loader
    gc.collect()
    _wait_for(lambda: all(_is_gone(pid) for pid in first | second))


def test_a_left_loop_ends_busy_processes_and_the_next_starts_others() -> None:
    loader = MonitoredLoader(list(range(100)), 50, transform=slowly, workers=2, worker_kind="fork")
    began = time.monotonic()
    for number, _ in enumerate(loader):
        assert number == 0
        break
    assert time.monotonic() - began < 3
    assert [len(batch) for batch in loader] == [50, 50]
    loader.close()
    loader.close()
    assert [len(batch) for batch in loader] == [50, 50]
    loader.close()


@pytest.mark.parametrize(("transform", "words"), [(die_at_5, "SIGKILL"), (leave_at_5, "status 3")])
@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_a_dead_process_is_named_and_nothing_hangs(
    kind: WorkerKind, transform: Callable[[int], int], words: str
) -> None:
    with MonitoredLoader(
        list(range(20)), 2, transform=transform, workers=2, worker_kind=kind
    ) as loader:
        batches = iter(loader)
        assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
        with pytest.raises(
            WorkerDiedError, match=rf"worker [01] \(process \d+\).*{words}.*batch 2"
        ):
            next(batches)
        assert next(iter(loader)).tolist() == [0, 1]


def test_a_fork_of_the_loop_leaves_the_workers_alone() -> None:
    loader = MonitoredLoader(list(range(40)), 2, transform=slowly, workers=2, worker_kind="fork")
    batches = iter(loader)
    next(batches)
    pid = os.fork()
    if pid == 0:
        del batches, loader
        gc.collect()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert sum(len(batch) for batch in batches) == 38
    loader.close()


_SCRIPT = """
import os, sys, time
from readers.loader import MonitoredLoader

def slowly(value):
    time.sleep(0.02)
    return os.getpid()

if __name__ == "__main__":
    numbers = list(range(1000))
    loader = MonitoredLoader(numbers, 5, transform=slowly, workers=3, worker_kind="{kind}")
    batches = iter(loader)
    pids = {{int(next(batches)[0]) for _ in range(6)}}
    print(*pids, flush=True)
    {end}
"""
_ENDS = {
    "end": "pass",
    "exit": "sys.exit(0)",
    "error": "raise SystemExit(0) from ValueError()",
    "ctrl-c": "[None for _ in batches]",
    "kill": "[None for _ in batches]",
}


@pytest.mark.parametrize("kind", ["thread", "fork", "spawn"])
@pytest.mark.parametrize("end", _ENDS)
def test_a_program_ends_at_once_in_the_middle_of_an_epoch(
    tmp_path: Path, kind: str, end: str
) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT.format(kind=kind, end=_ENDS[end]))
    with subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "TMPDIR": str(tmp_path)},
        start_new_session=True,
    ) as program:
        assert program.stdout is not None
        pids = [int(pid) for pid in program.stdout.readline().split()]
        assert pids
        if end == "ctrl-c":
            os.killpg(program.pid, signal.SIGINT)
        elif end == "kill":
            program.kill()
        errors = program.communicate(timeout=_SOON)[1]
    if end == "ctrl-c":
        assert errors.count("Traceback") == 1
        assert errors.rstrip().endswith("KeyboardInterrupt")
        assert program.returncode == -signal.SIGINT
    elif end == "kill":
        assert program.returncode == -signal.SIGKILL
    else:
        assert errors == ""
        assert program.returncode == 0
    _wait_for(lambda: all(_is_gone(pid) for pid in pids))
    if end != "kill":
        assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
