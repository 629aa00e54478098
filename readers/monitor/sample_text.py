"""Samples that were timed, as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from readers.monitor.amounts import duration
from readers.monitor.record import UNKNOWN, LatencyRecord, SampleRecord

_LISTED = 10
_BAR = 40


def sample_name(sample: SampleRecord) -> str:
    """Names a sample by its index and its key, as far as they are known."""
    index = "sample" if sample.index == UNKNOWN else f"sample {sample.index}"
    return f"{index} {sample.key}" if sample.key else index


def latency_range(latency: LatencyRecord) -> str:
    """Names the times that are counted."""
    if not latency.begin:
        return "under 2.0 µs"
    return f"{duration(latency.begin * 1e-9)} to {duration(latency.begin * 2e-9)}"


def slowest_text(samples: Sequence[SampleRecord]) -> str:
    """Lists the slowest samples, a line each."""
    return "\n".join(["the slowest samples", *map(_line, samples[:_LISTED])])


def latency_text(latencies: Sequence[LatencyRecord]) -> str:
    """Draws how often a sample took how long, a line for each power of two."""
    lines: list[str] = []
    part = None
    most = max(latency.count for latency in latencies)
    for latency in latencies:
        if latency.part != part:
            part = latency.part
            lines.append(f"how often a {part} took how long")
        bar = "#" * -(-latency.count * _BAR // most)
        lines.append(f"{latency_range(latency):>20} {latency.count:9,} {bar}")
    return "\n".join(lines)


def _line(sample: SampleRecord) -> str:
    read = "" if sample.read == UNKNOWN else f", {duration(sample.read * 1e-9)} of it reading"
    worker = "" if sample.worker == UNKNOWN else f", worker {sample.worker}"
    return f"{duration(sample.took * 1e-9):>9} {sample_name(sample)}{read}{worker}"
