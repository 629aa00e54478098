"""Real causes in real loaders: the diagnosis raises the right alarm, and no other.

They want the machine to themselves, so they run where PACKER_PLANTED_CAUSES=1 says that they have
it: `PACKER_PLANTED_CAUSES=1 pytest tests/readers/monitor/test_planted_causes.py`. A play that other
programs took much of the processor from proves nothing, because the diagnosis rightly names them:
it is played again, and skipped if it never gets its peace.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from typing_extensions import Self

from packer.commands.doctor import doctor
from readers.errors import PackError
from readers.monitor.diagnosis import diagnose, headline
from readers.monitor.finding import Finding
from readers.monitor.run import read_run
from readers.monitor.thresholds import Thresholds

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    os.environ.get("PACKER_PLANTED_CAUSES") != "1",
    reason="they want the machine to themselves: set PACKER_PLANTED_CAUSES=1",
)

_PROGRAM = Path(__file__).with_name("causes.py")
_ROOT = Path(__file__).parents[3]
_COLD = "cold"
_BLOCK = 1 << 15
_LOOK = 0.3
_ATTEMPTS = 3
_DISTURBED = 0.1
_OWN_SHARED_MEMORY = (
    "unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=24m none /dev/shm && exec "$@"', "sh",
)  # fmt: skip


def start(cause: str, run: Path, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    command = [*before, sys.executable, "-W", "ignore", str(_PROGRAM), cause, str(run)]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    return subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def play(cause: str, run: Path, before: tuple[str, ...] = ()) -> None:
    with start(cause, run, before) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said


def alarms(cause: str, place: Path) -> list[Finding]:
    """Plays a cause until other programs left it its processors, and gives what was found."""
    wanted = [] if cause == "healthy" else [cause]
    taken = 0.0
    for attempt in range(_ATTEMPTS):
        run = place / str(attempt)
        with Others() as others:
            play(cause, run)
        found = [one for one in diagnose(read_run(run)) if one.severity == "alarm"]
        if [finding.rule for finding in found] == wanted or others.share <= _DISTURBED:
            return found
        taken = others.share
    pytest.skip(f"other programs took {taken:.0%} of the processors")


class Others:
    """How much of the processors went to processes that this one has neither been nor waited for.

    Attributes:
        share: Of all processors while this was entered.
    """

    share = 0.0

    def __enter__(self) -> Self:
        self._began, self._busy, self._own = time.monotonic(), busy_seconds(), own_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        others = busy_seconds() - self._busy - (own_seconds() - self._own)
        whole = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        self.share = max(0.0, others / whole)


def busy_seconds() -> float:
    """Adds up what all processors spent on anything."""
    _, user, nice, system, _, _, *interrupts = Path("/proc/stat").read_text().split()[:9]
    return sum(map(int, (user, nice, system, *interrupts))) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        ("remote-storage", "num_workers="),
        ("decode", "--format npy"),
        ("transform", "transform whole batches"),
        ("collate", "collate uint8"),
        ("contention", "OMP_NUM_THREADS=1"),
        ("too-few-workers", "num_workers=2"),
        ("imbalance", "look at what that worker reads"),
        ("head-of-line", "in_order=False"),
        ("slow-samples", "shrink them while packing"),
        ("hand-off", "smaller batches in bytes"),
        ("first-batch", "persistent_workers=True"),
        ("memory-growth", "keep metadata in arrays"),
    ],
)
def test_the_cause_is_the_only_alarm(cause: str, remedy: str, tmp_path: Path) -> None:
    if cause == "too-few-workers" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core has no room for two workers")
    found = alarms(cause, tmp_path)
    assert [finding.rule for finding in found] == [cause]
    assert remedy in found[0].remedy


def test_cold_files(tmp_path: Path) -> None:
    share = blocked_share(tmp_path / _COLD)
    if share < 0.45:
        pytest.skip(f"this disk is too fast to hold up anything: reads wait {share:.0%}")
    (finding,) = alarms("storage", tmp_path)
    assert finding.rule == "storage"
    assert "packer convert" in finding.remedy


def blocked_share(path: Path) -> float:
    """Makes the file that is read, and tells for how much of their time cold reads wait."""
    path.write_bytes(os.urandom(_BLOCK << 11))
    file = os.open(path, os.O_RDWR)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    began, on_cpu = time.perf_counter(), time.thread_time()
    for block in range(0, 1 << 11, 7):
        os.pread(file, _BLOCK, block * _BLOCK)
    share = 1 - (time.thread_time() - on_cpu) / (time.perf_counter() - began)
    os.close(file)
    return share


def test_a_healthy_run_raises_no_alarm(tmp_path: Path) -> None:
    assert alarms("healthy", tmp_path) == []
    recording = read_run(max(tmp_path.iterdir()))
    assert len(recording.batches) == 60
    assert headline(recording).startswith(("fine", "moderately"))


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="mounting needs root and unshare"
)
def test_shared_memory_that_will_not_do_is_told_of_before_the_error(tmp_path: Path) -> None:
    probe = subprocess.run([*_OWN_SHARED_MEMORY, "true"], check=False, capture_output=True)
    if probe.returncode:
        pytest.skip(f"no mount namespace here: {probe.stderr.decode()}")
    play("shared-memory", tmp_path, _OWN_SHARED_MEMORY)
    *told, end = json.loads((tmp_path / "seen.json").read_text())
    assert "No space left on device" in end["error"]
    assert {finding["rule"] for finding in told} == {"shared-memory"}
    assert "the batches made ahead need 52." in told[0]["verdict"]
    assert "of /dev/shm" in told[0]["verdict"]


def test_a_stuck_worker_and_where_it_stands(tmp_path: Path) -> None:
    run = tmp_path / "run"
    limits = Thresholds(stuck=1.0)
    with start("stuck", run) as process:
        try:
            found = wait_for_finding(run, limits)
            assert [finding.rule for finding in found] == ["stuck"]
            assert "has been in dataset for" in found[0].verdict
            assert f"packer monitor stacks {found[0].evidence['pid']}" in found[0].remedy
            shown = shown_by_doctor(run, limits)
            assert "alarm: stuck: worker 0" in shown
            assert "waiting_for_ever" in shown or "can't be seen" in shown
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def wait_for_finding(run: Path, limits: Thresholds) -> list[Finding]:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        time.sleep(_LOOK)
        try:
            if found := diagnose(read_run(run), limits):
                return found
        except PackError:
            continue  # it hasn't begun yet
    return []


def shown_by_doctor(run: Path, limits: Thresholds) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("packer.commands.doctor.diagnose", lambda seen: diagnose(seen, limits))
        result = CliRunner().invoke(doctor, [str(run)])
    assert result.exit_code == 0, result.exception
    return result.stdout
