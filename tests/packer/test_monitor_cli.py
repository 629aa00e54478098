from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from packer.commands.doctor import doctor
from packer.commands.monitor import monitor
from readers.errors import DatasetNotFoundError, MissingDependencyError, OptionError, SourceError
from readers.monitor.log import default_line, megengine_line
from readers.monitor.record import BatchRecord
from readers.monitor.recording import Recording, save_recording
from tests.recordings import FACTS, Plant, simulate


def run(*arguments: object, fine: bool = True) -> Result:
    name, *rest = map(str, arguments)
    command = doctor if name == "doctor" else monitor
    result = CliRunner().invoke(command, rest if name == "doctor" else [name, *rest])
    if fine:
        assert result.exit_code == 0, (result.output, result.exception)
    return result


def answer(*arguments: object) -> Any:  # noqa: ANN401 - JSON
    return json.loads(run(*arguments, "--json").stdout)


def decoding(dataset: float = 90.0) -> Recording:
    return simulate(
        lambda _batch, _worker: Plant(dataset=dataset), facts=replace(FACTS, workers=2, cores=2)
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "recording.jsonl"
    save_recording(path, decoding())
    return path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name, work in (("base", 90.0), ("same", 91.0), ("worse", 110.0)):
        for number in range(5):
            folder = tmp_path / name / f"run-{number}"
            folder.mkdir(parents=True)
            save_recording(folder / "recording.jsonl", decoding(work + number / 10))
    return tmp_path


def test_doctor_names_cause_evidence_and_remedy(recorded: Path) -> None:
    text = run("doctor", recorded).stdout
    assert text.startswith("input-bound: the loop waits 56% of the time\nalarm: decode: ")
    assert "evidence: " in text
    assert "packer convert" in text
    (finding,) = answer("doctor", recorded)["findings"]
    assert finding["rule"] == "decode"
    assert finding["gain"] == "up to 2.3 times the throughput"
    assert answer("doctor", recorded, "--last", 10)["findings"] == []


@pytest.mark.parametrize("line", [default_line, megengine_line])
def test_doctor_reads_logs(line: Callable[[BatchRecord], str], tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    lines = [line(batch) for batch in decoding().batches]
    path.write_text("epoch 0\n" + "\n".join(lines) + "\nloss: 0.1\n")
    rules = [finding["rule"] for finding in answer("doctor", path)["findings"]]
    assert rules == (["decode"] if line is default_line else [])
    assert answer("summarize", path)["stages"]["dataset"]["p50"] == pytest.approx(0.09)
    assert isinstance(run("trace", path, "-o", path, fine=False).exception, OptionError)
    path.write_text("nothing of ours\n")
    assert isinstance(run("doctor", path, fine=False).exception, SourceError)


def test_what_isnt_there_is_said_to_be_missing(tmp_path: Path) -> None:
    for missing in (tmp_path, tmp_path / "run"):
        error = run("doctor", missing, fine=False).exception
        assert isinstance(error, DatasetNotFoundError)


def test_summarize(recorded: Path) -> None:
    assert "800 samples in 100 batches" in run("summarize", recorded).stdout
    assert answer("summarize", recorded, "--last", 40)["batches"] == 40
    assert answer("summarize", recorded, "--epoch", 3)["steps"] == 0


def test_top_looks_at_a_run(recorded: Path) -> None:
    assert "waits" in run("top", recorded.parent, "--once").stdout
    assert answer("top", recorded.parent, "--once")["workers"] == []


def test_gate_fails_with_status_1(runs: Path) -> None:
    assert "passed: throughput" in run("gate", runs / "base", runs / "same").stdout
    failed = run("gate", runs / "base", runs / "worse", fine=False)
    assert failed.exit_code == 1
    assert "FAILED: CPU a sample 1" in failed.stdout
    assert not json.loads(run("gate", runs / "base", runs / "worse", "--json", fine=False).stdout)[
        "passed"
    ]
    single = (runs / "base" / "run-0", runs / "same" / "run-1")
    assert isinstance(run("gate", *single, fine=False).exception, OptionError)
    assert answer("gate", *single, "--runs-at-least", 1)["passed"]


def test_what_if(recorded: Path) -> None:
    found = answer("what-if", recorded)
    assert found["predictions"][-1]["change"].startswith("upper bound")
    assert (found["workers"]["advised"], found["workers"]["binding"]) == (2, "CPU")
    (four, _bound) = answer("what-if", recorded, "--workers", 4)["predictions"]
    assert (four["change"], four["bound_by"]) == ("4 workers", "cores")
    assert "advice: 2 workers (CPU binds" in run("what-if", recorded).stdout
    assert run("what-if", recorded, "--storage", 0, fine=False).exit_code == 2


def test_exports(recorded: Path, tmp_path: Path) -> None:
    page, timeline, metrics = (tmp_path / name for name in ("r.html", "t.json", "m.prom"))
    assert answer("report", recorded, "-o", page) == {"written": str(page)}
    assert "<svg" in page.read_text()
    run("trace", recorded, "-o", timeline)
    assert json.loads(timeline.read_text())["traceEvents"]
    pytest.importorskip("prometheus_client")
    run("serve", recorded, "--textfile", metrics)
    assert "packer_loader_wait_share" in metrics.read_text()


def test_missing_tools_are_named_with_their_install_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    measured_by_nobody = 1
    for name, how in (("stacks", "pip install py-spy"), ("io", "apt install")):
        error = run(name, measured_by_nobody, fine=False).exception
        assert isinstance(error, MissingDependencyError)
        assert how in str(error)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "readers.monitor.prometheus", raising=False)
    error = run("serve", tmp_path, fine=False).exception
    assert isinstance(error, MissingDependencyError)


@pytest.mark.skipif(os.geteuid() != 0, reason="tracing other processes needs root")
@pytest.mark.parametrize(("tool", "seen"), [("py-spy", "waiting_here"), ("perf", "read")])
def test_real_tools_look_at_a_process(tool: str, seen: str) -> None:
    if shutil.which(tool) is None and not Path(sys.executable).with_name(tool).exists():
        pytest.skip(f"{tool} isn't installed")
    program = (
        "import os, time\n"
        "def waiting_here():\n"
        "    file = os.open('/dev/zero', os.O_RDONLY)\n"
        "    print('ready', flush=True)\n"
        "    while True:\n"
        "        os.read(file, 9)\n"
        "        time.sleep(0.005)\n"
        "waiting_here()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            options = ["--seconds", 0.5] if tool == "perf" else []
            command = "io" if tool == "perf" else "stacks"
            result = run(command, process.pid, *options, fine=False)
            if result.exit_code and "failed" in result.output:
                pytest.skip(f"{tool} may not trace here: {result.output}")
            assert seen in result.stdout
            assert json.loads(run(command, process.pid, *options, "--json").stdout)
        finally:
            process.kill()
