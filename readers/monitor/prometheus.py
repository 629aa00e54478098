"""Metrics for Prometheus: worked out in the main process when they are asked for, never before.

The workers and the training loop pay nothing for it. Counts go on growing as long as no more
batches are made between two scrapes than the recording keeps.
"""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from typing_extensions import Self

from readers.monitor.diagnosis import diagnose
from readers.monitor.record import UNKNOWN
from readers.monitor.recording import Recording
from readers.monitor.summary import summarize
from readers.monitor.totals import Totals, latency_buckets
from readers.monitor.window import last

_LOADER = "loader"
_POLL = 0.05
"""Seconds that closing the server may take."""
_COUNTERS = {
    "cpu": ("cpu_seconds", "Time on the CPU in dataset and transform."),
    "queued": ("queued_seconds", "Time of dataset and transform spent waiting for a CPU."),
    "blocked": ("blocked_seconds", "Time of dataset and transform neither on nor waiting for one."),
    "read_calls_bytes": ("read_bytes", "Bytes that read calls gave."),
    "storage_bytes": ("storage_bytes", "Bytes that came from storage."),
    "major_faults": ("major_faults", "Page faults that waited for storage."),
}


class LoaderMetrics(Collector):
    """A custom collector over the recording of one loader."""

    def __init__(
        self, read: Callable[[], Recording], *, loader: str = "loader", window: int = 200
    ) -> None:
        """Makes a collector.

        Args:
            read: Gives the recording as it is now.
            loader: Value of the label `loader`.
            window: Batches that gauges and findings look back on.
        """
        self._read = read
        self._loader = loader
        self._window = window
        self._totals = Totals()
        self._lock = threading.Lock()

    def describe(self) -> list[Metric]:
        """Promises nothing: what there is, a scrape tells."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Gives the metrics as they are now."""
        recording = self._read()
        with self._lock:
            self._totals.add(recording)
            yield from self._counted()
        yield self._sampled(recording)
        yield from self._gauged(recording)

    def _counted(self) -> Iterator[Metric]:
        totals, label = self._totals, self._loader
        histogram = HistogramMetricFamily(
            "packer_loader_stage_seconds",
            "Time a batch by stage; wait and compute are of the training loop.",
            labels=[_LOADER, "stage"],
        )
        for stage, times in totals.stages.items():
            histogram.add_metric([label, stage], times.buckets, times.sum)
        yield histogram
        for name, text, value in (
            ("samples", "Samples that the training loop got.", totals.samples),
            ("steps", "Batches that the training loop got.", totals.steps),
            *((name, text, totals.amounts[key]) for key, (name, text) in _COUNTERS.items()),
        ):
            counter = CounterMetricFamily(f"packer_loader_{name}", text, labels=[_LOADER])
            counter.add_metric([label], value)
            yield counter
        made = CounterMetricFamily(
            "packer_loader_batches", "Batches made, by worker.", labels=[_LOADER, "worker"]
        )
        for worker, count in totals.batches.items():
            made.add_metric([label, worker], count)
        yield made

    def _sampled(self, recording: Recording) -> Metric:
        histogram = HistogramMetricFamily(
            "packer_loader_sample_seconds",
            "Time a sample by part, if samples are timed; counted in powers of two, not added up.",
            labels=[_LOADER, "part"],
        )
        for part in sorted({latency.part for latency in recording.latencies}):
            buckets = latency_buckets(recording.latencies, part)
            histogram.add_metric([self._loader, part], buckets, sum_value=None)
        return histogram

    def _gauged(self, recording: Recording) -> Iterator[Metric]:
        window = last(recording, self._window)
        summary = summarize(window)
        step = window.steps[-1] if window.steps else None
        for name, text, value in (
            ("wait_share", "Part of the loop's time that it waited.", summary.wait_share),
            ("first_batch_seconds", "Wait for the epoch's first batch.", self._totals.first_batch),
            ("ready_batches", "Batches finished and not delivered.", step.ready if step else None),
            (
                "shared_memory_free_bytes",
                "Free bytes of /dev/shm.",
                step.shared_memory_free if step else None,
            ),
            ("workers", "Workers that the loader has.", recording.facts.workers),
            ("batches_lost", "Batches made and not seen.", recording.lost),
        ):
            gauge = GaugeMetricFamily(f"packer_loader_{name}", text, labels=[_LOADER])
            if value is not None and value != UNKNOWN:
                gauge.add_metric([self._loader], value)
            yield gauge
        yield self._by_worker(
            "worker_busy_share", "Part of its time that a worker made batches.", summary.busy
        )
        states = {f"worker {state.worker}": state for state in recording.workers if state.alive}
        yield self._by_worker(
            "worker_stage_seconds",
            "How long a worker has been in its stage; 0 if it is idle.",
            {
                name: 0.0 if state.stage == "idle" else (state.seen - state.since) * 1e-9
                for name, state in states.items()
            },
        )
        yield self._by_worker(
            "memory_unique_bytes",
            "Memory that a process shares with no other.",
            {
                "main" if taken.worker == UNKNOWN else f"worker {taken.worker}": taken.unique
                for taken in recording.memory
            },
        )
        findings = GaugeMetricFamily(
            "packer_loader_finding",
            "1 for each cause that the diagnosis names.",
            labels=[_LOADER, "rule", "severity"],
        )
        for finding in diagnose(window):
            findings.add_metric([self._loader, finding.rule, finding.severity], 1)
        yield findings

    def _by_worker(self, name: str, text: str, values: Mapping[str, float]) -> Metric:
        gauge = GaugeMetricFamily(f"packer_loader_{name}", text, labels=[_LOADER, "worker"])
        for worker, value in values.items():
            gauge.add_metric([self._loader, worker], value)
        return gauge


class MetricsServer:
    """Answers `GET /metrics` from a thread until it is closed.

    Attributes:
        url: Where to scrape.
    """

    def __init__(self, metrics: LoaderMetrics, *, host: str = "127.0.0.1", port: int = 0) -> None:
        """Begins to listen.

        Args:
            metrics: What to give.
            host: Address to listen on: this machine alone unless told otherwise.
            port: 0 for any that is free.

        Raises:
            OSError: The address isn't to be had.
        """
        registry = CollectorRegistry()
        registry.register(metrics)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _answer(self, registry)

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing: scrapes come every few seconds."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        _close_in_children(self._server.socket)
        address, taken = self._server.server_address[:2]
        self.url = f"http://{address!s}:{taken}/metrics"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL,), name="packer-metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.close()


def _close_in_children(listening: socket.socket) -> None:
    """Keeps the port from living on in workers that outlive this process."""
    reference = weakref.ref(listening)

    def close() -> None:
        inherited = reference()
        if inherited is not None:
            inherited.close()

    os.register_at_fork(after_in_child=close)


def write_metrics(metrics: LoaderMetrics, path: Path) -> None:
    """Writes the metrics to a file, for node_exporter's textfile collector; at once or not at all.

    Raises:
        OSError: It can't be written.
    """
    registry = CollectorRegistry()
    registry.register(metrics)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_bytes(generate_latest(registry))
    new.replace(path)


def _answer(handler: BaseHTTPRequestHandler, registry: CollectorRegistry) -> None:
    if handler.path.split("?")[0] not in {"/", "/metrics"}:
        handler.send_error(404)
        return
    body = generate_latest(registry)
    handler.send_response(200)
    handler.send_header("Content-Type", CONTENT_TYPE_LATEST)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
