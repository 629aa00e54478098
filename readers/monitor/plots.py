"""The plots of the HTML report."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from readers.monitor.amounts import duration, percent
from readers.monitor.columns import Floats, seconds
from readers.monitor.record import UNKNOWN, BatchRecord
from readers.monitor.recording import Recording
from readers.monitor.sample_text import latency_range
from readers.monitor.svg import Chart, even_ticks
from readers.monitor.thresholds import Thresholds
from readers.monitor.workers import by_worker

_BINS = 160
_SHOWN_STEPS = 40
_TALL, _LOW = 240, 170
_ROW, _MARGINS = 22, 44
_ROWS = 32
"""Workers that the timeline shows."""
_BASE = math.sqrt(2)
"""Ratio of neighbouring bounds of the histogram."""


def stage_parts(recording: Recording) -> dict[str, Floats]:
    """Divides the fetch of each batch into what is known of it, in seconds."""
    batches = recording.batches
    dataset = seconds(batches, "dataset")
    finer = {name: seconds(batches, name) for name in ("read", "decode")}
    known = {name: values for name, values in finer.items() if not np.isnan(values).all()}
    parts = {name: np.nan_to_num(values) for name, values in known.items()}
    rest = np.maximum(0.0, dataset - sum(parts.values(), np.zeros_like(dataset)))
    return {
        **parts,
        "dataset": rest,
        "transform": seconds(batches, "transform"),
        "collate": seconds(batches, "collate"),
    }


def stages_plot(recording: Recording) -> str:
    """Stacks the stage times of the batches, in the order in which they were made."""
    parts = {name: _binned(values) for name, values in stage_parts(recording).items()}
    heights = np.sum(list(parts.values()), axis=0)
    count = len(recording.batches)
    chart = Chart(
        "stage times of the batches", x_end=count, y_end=float(heights.max()) * 1.05, height=_TALL
    )
    chart.y_ticks(duration)
    width = count / len(heights)
    floor = np.zeros_like(heights)
    for name, values in parts.items():
        for index, value in enumerate(values):
            left, low = index * width, float(floor[index])
            tip = f"{name} {duration(float(value))}, batches from {left:.0f}"
            chart.bar(name, (left, low), (left + width, low + float(value)), tip)
        floor += values
    chart.x_ticks(even_ticks(count, lambda value: f"{value:.0f}"), "batches made")
    return str(chart)


def wait_plot(recording: Recording, thresholds: Thresholds) -> str:
    """Draws the part of the loop's time that it waited."""
    steps = [step for step in recording.steps if step.compute != UNKNOWN]
    wait, compute = _binned(seconds(steps, "wait")), _binned(seconds(steps, "compute"))
    shares = wait / np.maximum(wait + compute, 1e-12)
    chart = Chart("share of waiting", x_end=len(steps), y_end=1.0, height=_LOW)
    chart.y_ticks(percent)
    width = len(steps) / max(1, len(shares))
    chart.area("wait", [((index + 0.5) * width, float(s)) for index, s in enumerate(shares)])
    chart.level(thresholds.bound, f"input-bound from {percent(thresholds.bound)}")
    chart.x_ticks(even_ticks(len(steps), lambda value: f"{value:.0f}"), "steps of the loop")
    return str(chart)


def timeline_plot(recording: Recording) -> str:
    """Draws who did what in the last steps: the loop, and each worker."""
    steps = recording.steps[-_SHOWN_STEPS:]
    begin = steps[0].began if steps else recording.batches[-_SHOWN_STEPS:][0].began
    batches = [batch for batch in recording.batches if batch.ended > begin]
    workers = dict(list(by_worker(batches).items())[:_ROWS])
    rows = [*(["loop"] if steps else []), *workers]
    stamps = [batch.ended for batch in batches]
    stamps += [step.began + step.wait + max(0, step.compute) for step in steps]
    end = (max(stamps) - begin) * 1e-9
    chart = Chart(
        "timeline of the last steps",
        x_end=end,
        y_end=len(rows),
        height=_MARGINS + _ROW * len(rows),
    )
    for index, name in enumerate(rows):
        chart.row(len(rows) - index - 0.5, name)
    for step in steps:
        at = (step.began - begin) * 1e-9
        got = at + step.wait * 1e-9
        low, high = len(rows) - 0.85, len(rows) - 0.15
        chart.bar("wait", (at, low), (got, high), f"wait {duration(got - at)}")
        computed = max(0, step.compute) * 1e-9
        tip = f"compute {duration(computed)}"
        chart.bar("compute", (got, low), (got + computed, high), tip)
    for index, made in enumerate(workers.values()):
        _row_of(chart, made, begin, len(rows) - index - (2 if steps else 1))
    chart.x_ticks(even_ticks(end, duration), "time")
    return str(chart)


def histogram_plot(recording: Recording) -> str:
    """Counts how often a batch took how long to make, and how long the loop waited for one."""
    series = {
        "dataset": seconds(recording.batches, "fetch"),
        "wait": seconds(recording.steps, "wait"),
    }
    exponents = {
        name: np.floor(np.log(np.maximum(values, 1e-5)) / math.log(_BASE)).astype(int)
        for name, values in series.items()
        if values.size
    }
    low = min(int(values.min()) for values in exponents.values())
    bins = max(int(values.max()) for values in exponents.values()) - low + 1
    counted = {
        name: np.bincount(values - low, minlength=bins) for name, values in exponents.items()
    }
    most = max(int(counts.max()) for counts in counted.values())
    chart = Chart("histogram of times", x_end=bins, y_end=most * 1.05, height=_LOW)
    chart.y_ticks(lambda value: f"{value:.0f}")
    for place, (name, counts) in enumerate(counted.items()):
        for index, count in enumerate(counts):
            left = index + 0.08 + 0.42 * place
            word = "fetch" if name == "dataset" else name
            around = f"{duration(_BASE ** (low + index))} to {duration(_BASE ** (low + index + 1))}"
            tip = f"{word} of {around}: {count} times"
            if count:
                chart.bar(name, (left, 0), (left + 0.42, float(count)), tip)
    every = max(1, bins // 9)
    places = [
        (float(index), duration(_BASE ** (low + index))) for index in range(0, bins + 1, every)
    ]
    chart.x_ticks(places, "time (each bar 1.4 times the one before)")
    return str(chart)


def latency_plot(recording: Recording) -> str:
    """Counts how often a sample took how long, and how long its reading did."""
    powers = {latency: latency.begin.bit_length() for latency in recording.latencies}
    low, high = min(powers.values()), max(powers.values())
    most = max(latency.count for latency in recording.latencies)
    chart = Chart("histogram of samples", x_end=high - low + 1, y_end=most * 1.05, height=_LOW)
    chart.y_ticks(lambda value: f"{value:.0f}")
    for latency, power in powers.items():
        left = power - low + 0.08 + 0.42 * (latency.part == "read")
        series = "read" if latency.part == "read" else "dataset"
        tip = f"{latency.part} of {latency_range(latency)}: {latency.count} times"
        chart.bar(series, (left, 0), (left + 0.42, float(latency.count)), tip)
    begins = {power - low: latency.begin for latency, power in powers.items()}
    places = [(float(place), duration(begin * 1e-9)) for place, begin in sorted(begins.items())]
    chart.x_ticks(places, "time (each place twice the one before)")
    return str(chart)


def _row_of(chart: Chart, batches: Sequence[BatchRecord], begin: int, row: float) -> None:
    for batch in batches:
        at = (batch.began - begin) * 1e-9
        for stage in ("dataset", "transform", "collate"):
            took = getattr(batch, stage) * 1e-9
            left, at = max(0.0, at), at + took
            if took and at > 0:
                tip = f"batch {batch.batch}: {stage} {duration(took)}"
                chart.bar(stage, (left, row + 0.15), (at, row + 0.85), tip)


def _binned(values: Floats) -> Floats:
    """Averages neighbours until few enough are left."""
    if not values.size:
        return values
    parts = np.array_split(values, min(_BINS, values.size))
    return np.array([part.mean() for part in parts])
