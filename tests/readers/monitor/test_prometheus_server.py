from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from readers.monitor.record import LatencyRecord, MemoryRecord, WorkerState
from readers.monitor.recording import Recording
from tests.recordings import FACTS, MS, Plant, simulate

prometheus = pytest.importorskip("readers.monitor.prometheus", exc_type=ImportError)

PROGRAMS = ("prometheus", "prometheus-alertmanager", "promtool")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
ASSETS = files("readers.monitor").joinpath("assets")
SECONDS = 20.0

needs_programs = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


@needs_programs
def test_every_panel_has_data_and_an_alert_reaches_its_receiver(tmp_path: Path) -> None:
    metrics = prometheus.LoaderMetrics(Running(), loader="train")
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(prometheus.MetricsServer(metrics))
        receiver = stack.enter_context(webhook())
        alerts = free_port()
        stack.enter_context(alertmanager(tmp_path, alerts, receiver.url))
        asked = stack.enter_context(prometheus_server(tmp_path, server.url, alerts))
        missing = panels()
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and (missing or not receiver.alerts):
            missing = [expression for expression in missing if not has_data(asked, expression)]
            time.sleep(0.5)
    assert missing == []
    alert = receiver.got("decode")[0]
    assert alert["status"] == "firing"
    assert alert["labels"]["alertname"] == "LoaderFinding"
    assert alert["annotations"]["summary"] == "train: decode"


@needs_programs
def test_the_alert_rules_are_sound_as_they_are_shipped() -> None:
    subprocess.run(
        ["promtool", "check", "rules", "--lint-fatal", str(ASSETS.joinpath("alerts.yml"))],
        check=True,
        capture_output=True,
    )


def test_the_dashboard_is_one_that_grafana_imports() -> None:
    board = json.loads(ASSETS.joinpath("grafana.json").read_text())
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= board.keys()
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len({panel["id"] for panel in board["panels"]}) == len(set(places)) == len(places)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in board["panels"])
    for panel in board["panels"]:
        assert [target["refId"] for target in panel["targets"]] == list("ABCDEF")[
            : len(panel["targets"])
        ]


class Running:
    """Gives the recording of a loader that began when this was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._whole = simulate(
            lambda _batch, _worker: Plant(dataset=90),
            facts=replace(FACTS, workers=2, cores=2),
            batches=600,
        )
        self._whole.workers.append(
            WorkerState(
                worker=0,
                pid=1000,
                thread=1000,
                stage="dataset",
                since=0,
                seen=9 * MS,
                batches=1,
                alive=True,
                died=False,
            )
        )
        self._whole.memory.append(
            MemoryRecord(stamp=0, worker=0, pid=1000, unique=50 << 20, proportional=60 << 20)
        )

    def __call__(self) -> Recording:
        # It has done 60 steps already, so that the diagnosis needn't wait for them.
        now = round((time.monotonic() - self._began) * 1000) * MS + self._whole.steps[60].began
        return replace(
            self._whole,
            batches=[batch for batch in self._whole.batches if batch.ended < now],
            steps=[step for step in self._whole.steps if step.began < now],
            latencies=[LatencyRecord(part="sample", begin=1 << 20, count=now // MS)],
        )


class Receiver(HTTPServer):
    """Keeps the alerts that it gets."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ReceiverHandler)
        self.alerts: list[Any] = []
        self.url = f"http://127.0.0.1:{self.server_port}/"

    def got(self, rule: str) -> list[Any]:
        return [alert for alert in self.alerts if alert["labels"].get("rule") == rule]


class ReceiverHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Receiver)
        self.server.alerts += json.loads(body)["alerts"]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def webhook() -> Iterator[Receiver]:
    with Receiver() as receiver:
        thread = threading.Thread(target=receiver.serve_forever, daemon=True)
        thread.start()
        yield receiver
        receiver.shutdown()
        thread.join()


@contextlib.contextmanager
def alertmanager(folder: Path, port: int, receiver: str) -> Iterator[None]:
    config = folder / "alertmanager.yml"
    config.write_text(
        "route: {receiver: test, group_by: [alertname], group_wait: 0s, group_interval: 1s}\n"
        f"receivers: [{{name: test, webhook_configs: [{{url: '{receiver}'}}]}}]\n"
    )
    with started(
        "prometheus-alertmanager",
        f"--config.file={config}",
        f"--storage.path={folder / 'alerts'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ):
        yield


@contextlib.contextmanager
def prometheus_server(folder: Path, target: str, alerts: int) -> Iterator[str]:
    rules = folder / "alerts.yml"
    # Nobody waits two minutes here: the rules' expressions are tested, not their patience.
    rules.write_text(re.sub(r"for: \d+m", "for: 1s", ASSETS.joinpath("alerts.yml").read_text()))
    config = folder / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: ['{rules}']\n"
        "alerting: {alertmanagers: [{static_configs:"
        f" [{{targets: ['127.0.0.1:{alerts}']}}]}}]}}\n"
        "scrape_configs: [{job_name: loader, static_configs:"
        f" [{{targets: ['{urllib.parse.urlsplit(target).netloc}']}}]}}]\n"
    )
    port = free_port()
    with started(
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def started(*command: str) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def panels() -> list[str]:
    board = json.loads(ASSETS.joinpath("grafana.json").read_text())
    return [
        target["expr"].replace("$__rate_interval", "10s").replace("$loader", ".*")
        for panel in board["panels"]
        for target in panel["targets"]
    ]


def has_data(server: str, expression: str) -> bool:
    url = f"{server}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    try:
        with urllib.request.urlopen(url) as answer:  # noqa: S310 - ours
            result = json.load(answer)["data"]["result"]
    except OSError:
        return False
    return any(row["value"][1] not in {"NaN", "+Inf"} for row in result)
