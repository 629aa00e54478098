from __future__ import annotations

import json
import multiprocessing
import re
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from readers.monitor.html_report import html_report
from readers.monitor.record import UNKNOWN, LatencyRecord, MemoryRecord, WorkerState
from readers.monitor.recording import Recording
from readers.monitor.trace import trace_events, write_trace
from readers.monitor.window import last
from tests.recordings import FACTS, MS, Plant, simulate

prometheus = pytest.importorskip("readers.monitor.prometheus", exc_type=ImportError)


def recording() -> Recording:
    made = simulate(
        lambda _batch, _worker: Plant(dataset=90, decode=60),
        facts=replace(FACTS, workers=2, cores=2),
        epochs=2,
    )
    made.memory.append(MemoryRecord(stamp=5, worker=1, pid=1001, unique=7, proportional=9))
    made.workers.append(
        WorkerState(
            worker=1,
            pid=1001,
            thread=1001,
            stage="dataset",
            since=0,
            seen=2000 * MS,
            batches=100,
            alive=True,
            died=False,
        )
    )
    return made


def samples_of(text: str) -> dict[str, float]:
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def test_a_histogram_of_samples_counts_up_and_names_no_sum() -> None:
    latencies = [
        LatencyRecord(part="read", begin=0, count=9),
        LatencyRecord(part="sample", begin=0, count=1),
        LatencyRecord(part="sample", begin=1 << 20, count=5),
        LatencyRecord(part="sample", begin=1 << 35, count=2),
    ]
    metrics = prometheus.LoaderMetrics(lambda: replace(recording(), latencies=latencies))
    text = prometheus.generate_latest(metrics).decode()
    found = samples_of(text)
    bucket = 'packer_loader_sample_seconds_bucket{{le="{}",loader="loader",part="sample"}}'
    ends = ("2.048e-06", "0.001048576", "0.002097152", "34.3597384", "+Inf")
    assert [found[bucket.format(end)] for end in ends] == [1, 1, 6, 6, 8]
    assert "sample_seconds_sum" not in text


def test_prometheus_metrics_are_what_was_recorded(tmp_path: Path) -> None:
    whole = recording()
    file = tmp_path / "loader.prom"
    prometheus.write_metrics(prometheus.LoaderMetrics(lambda: whole, loader="train"), file)
    found = samples_of(file.read_text())
    assert found['packer_loader_samples_total{loader="train"}'] == 1600
    assert found['packer_loader_batches_total{loader="train",worker="worker 1"}'] == 100
    stage = 'packer_loader_stage_seconds_{}{{loader="train",stage="dataset"}}'
    assert found[stage.format("sum")] == pytest.approx(200 * 0.09)
    assert found[stage.format("count")] == 200
    below = 'packer_loader_stage_seconds_bucket{{le="{}",loader="train",stage="dataset"}}'
    assert (found[below.format("0.0512")], found[below.format("0.1024")]) == (0, 200)
    assert found['packer_loader_cpu_seconds_total{loader="train"}'] == pytest.approx(
        200 * 0.091 * 0.98
    )
    finding = 'packer_loader_finding{loader="train",rule="decode",severity="alarm"}'
    assert found[finding] == 1
    stuck = 'packer_loader_worker_stage_seconds{loader="train",worker="worker 1"}'
    assert found[stuck] == pytest.approx(2)
    assert [path.name for path in tmp_path.iterdir()] == ["loader.prom"]


def test_counts_go_on_while_the_recording_forgets() -> None:
    whole = recording()
    whole.batches.sort(key=lambda batch: (batch.epoch, batch.ended))
    seen = 0

    def read() -> Recording:
        return last(
            replace(whole, batches=whole.batches[:seen], steps=whole.steps[:seen]), batches=50
        )

    metrics = prometheus.LoaderMetrics(read)
    steps = {}
    for seen in (0, 30, 60, 60, 105, 150, 200):
        steps[seen] = {
            sample.name: sample.value
            for metric in metrics.collect()
            for sample in metric.samples
            if sample.name == "packer_loader_steps_total"
        }["packer_loader_steps_total"]
    assert all(seen == count for seen, count in steps.items())


def test_the_server_answers_on_loopback_only() -> None:
    metrics = prometheus.LoaderMetrics(recording)
    with prometheus.MetricsServer(metrics) as server:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics", server.url)
        with urllib.request.urlopen(server.url) as answer:  # noqa: S310 - ours
            assert answer.headers["Content-Type"].startswith("text/plain")
            assert "packer_loader_wait_share" in answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(server.url.replace("metrics", "secrets"))  # noqa: S310 - ours
        refused.value.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(server.url)  # noqa: S310 - ours


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def _stay(running: Event) -> None:
    running.set()
    time.sleep(60)


def test_a_forked_worker_does_not_keep_the_port() -> None:
    fork = multiprocessing.get_context("fork")
    running = fork.Event()
    with prometheus.MetricsServer(prometheus.LoaderMetrics(recording)) as server:
        worker = fork.Process(target=_stay, args=(running,))
        worker.start()
        assert running.wait(30)
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(server.url, timeout=5)  # noqa: S310 - ours
    worker.kill()
    worker.join()


def test_the_trace_holds_every_stage_in_its_place(tmp_path: Path) -> None:
    whole = recording()
    path = tmp_path / "trace.json"
    write_trace(whole, path)
    events = json.loads(path.read_text())["traceEvents"]
    assert events == json.loads(json.dumps(list(trace_events(whole))))
    slices = [event for event in events if event["ph"] == "X"]
    waits = sum(event["dur"] for event in slices if event["name"] == "wait")
    assert waits == pytest.approx(sum(step.wait for step in whole.steps) / 1000)
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in slices:
        if event["name"] in {"dataset", "transform", "collate", "wait", "compute"}:
            track = tracks.setdefault((event["pid"], event["tid"]), [])
            track.append((event["ts"], event["ts"] + event["dur"]))
    assert len(tracks) == 3
    for track in tracks.values():
        track.sort()
        assert all(first[1] <= second[0] + 1e-3 for first, second in pairwise(track))
    assert min(event["ts"] for event in slices) == 0
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {"training loop", "worker 0 (pid 1000)", "worker 1 (pid 1001)"}
    assert {event["name"] for event in events if event["ph"] == "C"} == {
        "ready batches",
        "free shared memory",
        "memory of worker 1",
    }


class Page(HTMLParser):
    """Notes what a page holds, and that its elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href"}]
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def test_the_report_stands_by_itself_and_escapes_what_users_wrote() -> None:
    whole = recording()
    facts = replace(whole.facts, dataset="/data/<script>alert(1)</script>", format="lmdb")
    text = html_report(replace(whole, facts=facts), title="<b>run & co</b>")
    page = Page(text)
    assert page.links == []
    assert not {"script", "img", "link"} & set(page.tags)
    assert "url(" not in text
    assert "&lt;b&gt;run &amp; co&lt;/b&gt;" in text
    assert page.tags.count("svg") == 4
    assert "decoding takes" in text
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        rects = ET.fromstring(drawing).iter("rect")  # noqa: S314 - ours
        assert all(0 <= float(rect.get("width", "nan")) <= 920 for rect in rects)


@pytest.mark.parametrize(
    "odd",
    [
        Recording(FACTS),
        simulate(batches=1),
        replace(simulate(), steps=[]),
        replace(simulate(), batches=[]),
        replace(
            simulate(),
            steps=[],
            batches=[
                replace(batch, began=UNKNOWN, epoch=UNKNOWN, samples=UNKNOWN)
                for batch in simulate().batches
            ],
        ),
    ],
    ids=["empty", "one", "no loop", "no workers", "log"],
)
def test_odd_recordings_give_pages_and_metrics_all_the_same(odd: Recording) -> None:
    Page(html_report(odd))
    assert list(prometheus.LoaderMetrics(lambda: odd).collect())
