"""Means, percentiles and rates of what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from readers.monitor.amounts import duration, percent
from readers.monitor.columns import Floats, counts, mean_of_known, seconds, share
from readers.monitor.record import LatencyRecord, SampleRecord
from readers.monitor.recording import Recording
from readers.monitor.sample_text import latency_text, slowest_text
from readers.monitor.window import epochs_of
from readers.monitor.workers import busy_shares, span

BATCH_STAGES = ("dataset", "read", "decode", "transform", "collate", "fetch")
"""What takes time in a worker; `read` and `decode` are parts of `dataset`, all are of `fetch`."""
STEP_STAGES = ("wait", "compute")
"""What takes time in the training loop."""

_WORKERS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Spread:
    """How long something took, in seconds."""

    mean: float
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A window or an epoch in figures."""

    batches: int
    """Batches that workers made."""
    steps: int
    """Batches that the loop got."""
    samples: int
    """Samples that the loop got; that workers read, where no loop was seen."""
    epochs: int
    stages: Mapping[str, Spread]
    """Times a batch of the stages that are known, in the order of `BATCH_STAGES`, `STEP_STAGES`."""
    samples_per_second: float | None
    batches_per_second: float | None
    wait_share: float | None
    """Part of the loop's time that it waited: sum of wait / (sum of wait + sum of compute)."""
    cpu_per_sample: float | None
    """Seconds on the CPU a sample, in dataset and transform."""
    busy: Mapping[str, float]
    """Share of the time in which each worker made batches."""
    first_batch: float | None
    """Seconds until an epoch's first batch; the median of the epochs."""
    ready: float | None
    """Batches that lay finished when the loop asked, on average."""
    lost: int
    """Batch records that were overwritten before they were read."""
    slowest: Sequence[SampleRecord]
    """Of the whole run, the slowest first; empty unless samples were timed."""
    latencies: Sequence[LatencyRecord]
    """Of the whole run likewise."""


def summarize(recording: Recording) -> Summary:
    """Summarizes a recording or a part of it; see `readers.monitor.window`."""
    batches, steps = recording.batches, recording.steps
    wait, compute = seconds(steps, "wait"), seconds(steps, "compute")
    times = {name: seconds(batches, name) for name in BATCH_STAGES} | {
        "wait": wait,
        "compute": compute,
    }
    samples = counts(steps, "samples") if steps else counts(batches, "samples")
    # The last step's compute isn't known: its samples would count for less than their time.
    whole = ~np.isnan(compute)
    if whole.any():
        rated, elapsed = samples[whole], float((wait + compute)[whole].sum())
    else:
        rated, elapsed = samples, float(wait.sum()) if steps else span(batches)
    first = [record.wait * 1e-9 for record in steps if record.step == 0]
    return Summary(
        batches=len(batches),
        steps=len(steps),
        samples=int(np.nansum(samples)),
        epochs=len(epochs_of(recording)),
        stages={name: found for name, values in times.items() if (found := _spread(values))},
        samples_per_second=float(np.nansum(rated)) / elapsed if elapsed else None,
        batches_per_second=len(rated) / elapsed if elapsed else None,
        wait_share=share(wait, wait + compute),
        cpu_per_sample=share(seconds(batches, "cpu"), counts(batches, "samples")),
        busy=busy_shares(batches),
        first_batch=median(first) if first else None,
        ready=mean_of_known(counts(steps, "ready")),
        lost=recording.lost,
        slowest=recording.samples,
        latencies=recording.latencies,
    )


def _spread(values: Floats) -> Spread | None:
    known = values[~np.isnan(values)]
    if not known.size:
        return None
    p50, p90, p99 = (float(value) for value in np.percentile(known, (50, 90, 99)))
    return Spread(float(known.mean()), p50, p90, p99)


def _busy_text(busy: Mapping[str, float]) -> str:
    if len(busy) <= _WORKERS_SHOWN:
        return ", ".join(f"{name} {percent(value)}" for name, value in busy.items())
    shares = sorted(busy.values())
    low, middle, high = (percent(value) for value in (shares[0], median(shares), shares[-1]))
    return f"{len(shares)} workers, the least {low}, in the middle {middle}, the most {high}"


def summary_text(summary: Summary) -> str:
    """Puts a summary into lines."""
    lines = [_amount_text(summary)]
    if loop := _loop_text(summary):
        lines.append(loop)
    if summary.busy:
        lines.append(f"busy: {_busy_text(summary.busy)}")
    if summary.stages:
        lines.append(f"{'a batch':10}" + "".join(f"{name:>9}" for name in Spread.__slots__))
    for name, spread in summary.stages.items():
        values = (getattr(spread, column) for column in Spread.__slots__)
        indent = "  " if name in {"read", "decode"} else ""
        lines.append(f"{indent + name:10}" + "".join(f"{duration(value):>9}" for value in values))
    if summary.slowest:
        lines.append(slowest_text(summary.slowest))
    if summary.latencies:
        lines.append(latency_text(summary.latencies))
    return "\n".join(lines)


def _amount_text(summary: Summary) -> str:
    text = f"{summary.samples:,} samples in {max(summary.steps, summary.batches):,} batches"
    if summary.samples_per_second is None or summary.batches_per_second is None:
        return text
    return (
        f"{text}: {summary.samples_per_second:,.1f} samples/s,"
        f" {summary.batches_per_second:,.1f} batches/s"
    )


def _loop_text(summary: Summary) -> str:
    parts = []
    if summary.wait_share is not None:
        parts.append(f"waiting {percent(summary.wait_share)} of the time")
    if summary.first_batch is not None:
        parts.append(f"first batch after {duration(summary.first_batch)}")
    if summary.ready is not None:
        parts.append(f"{summary.ready:.1f} batches ready")
    if summary.cpu_per_sample is not None:
        parts.append(f"CPU {duration(summary.cpu_per_sample)} a sample")
    if summary.lost:
        parts.append(f"{summary.lost:,} batches not seen")
    return ", ".join(parts)
