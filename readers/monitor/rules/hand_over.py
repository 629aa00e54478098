"""Rules on how batches get from the workers to the loop: too few workers, or the wrong one slow."""

from __future__ import annotations

from statistics import median

import numpy as np

from readers.monitor.amounts import duration, percent
from readers.monitor.columns import share
from readers.monitor.figures import Figures
from readers.monitor.finding import Finding
from readers.monitor.rules.remedies import deeper, unordered, workers
from readers.monitor.sample_text import sample_name
from readers.monitor.worker_count import WorkerCount
from readers.monitor.workers import by_worker

_LISTED = 8
"""Slow samples that are named."""


def hand_off(figures: Figures, _count: WorkerCount | None) -> Finding | None:
    """Rule 8: batches lie finished while the loop waits.

    Where batches can be told apart, the wait is divided exactly at the batch's end; elsewhere the
    batches that lie ready and the workers' idle time must do.
    """
    limits = figures.limits
    severity = figures.severity()
    if severity is None or not figures.facts.workers or figures.wait_share is None:
        return None
    if figures.mean_busy > limits.idle:
        return None
    handed = figures.handed_share
    if handed is None:
        if np.isnan(figures.ready).all():
            return None
        handed = share(figures.wait * (figures.ready >= 1), figures.wait) or 0.0
    if handed <= limits.handed:
        return None
    wait, compute = figures.step_seconds or (0.0, 0.0)
    return Finding(
        rule="hand-off",
        severity=severity,
        verdict=f"{percent(handed)} of the waiting is for batches that are finished already: they"
        " are slow to reach the main process",
        evidence={
            "wait_share": figures.wait_share,
            "finished_before_asked_share": handed,
            "busy_share": figures.mean_busy,
            "batch_bytes": figures.batch_bytes or "unknown",
        },
        remedy="smaller batches in bytes (uint8, not float32); shared memory on, pinning off to"
        " compare; `MonitoredLoader` with threads hands over without a copy",
        factor=(wait + compute) / max(compute + wait * (1 - handed), 1e-9),
    )


def imbalance(figures: Figures, _count: WorkerCount | None) -> Finding | None:
    """Rule 10: one worker takes longer for the same work.

    Medians a sample are compared, with those of the others, so that a few slow batches count for
    nothing.
    """
    severity = figures.severity()
    times = {
        name: median(batch.fetch / max(1, batch.samples) for batch in made) * 1e-9
        for name, made in by_worker(figures.recording.batches).items()
    }
    if severity is None or figures.wait_share is None or len(times) < 2:  # noqa: PLR2004 - a pair
        return None
    slowest = max(times, key=lambda name: times[name])
    others = median(took for name, took in times.items() if name != slowest)
    ratio = times[slowest] / max(others, 1e-9)
    if ratio <= figures.limits.slow_worker:
        return None
    return Finding(
        rule="imbalance",
        severity=severity,
        verdict=f"{slowest} takes {ratio:.1f} times as long as the others",
        evidence={
            "wait_share": figures.wait_share,
            "slowest_sample_seconds": times[slowest],
            "others_sample_seconds": others,
            "slowest": slowest,
        },
        remedy="look at what that worker reads: its shards, its disk; give workers shards of equal"
        f" size and shuffle before dividing them; {unordered(figures.facts)} lets the others go on;"
        f" `packer monitor stacks PID` of {slowest}",
        factor=figures.factor(1 - 1 / ratio),
    )


def slow_samples(figures: Figures, _count: WorkerCount | None) -> Finding | None:
    """Rule 11: single samples take many times as long as the usual one."""
    severity = figures.severity()
    samples = figures.recording.samples
    if severity is None or figures.wait_share is None or not samples:
        return None
    usual = median(
        (batch.dataset + batch.transform) / max(1, batch.samples)
        for batch in figures.recording.batches
    )
    slow = [sample for sample in samples if sample.took > figures.limits.slow_sample * usual]
    waited = float(figures.wait.sum())
    took = sum(sample.took for sample in slow) * 1e-9
    if not slow or took < figures.limits.raised * waited:
        return None
    listed = ", ".join(sample_name(sample) for sample in slow[:_LISTED])
    return Finding(
        rule="slow-samples",
        severity=severity,
        verdict=f"{len(slow)} samples take over {figures.limits.slow_sample:.0f} times as long as"
        f" the usual one: {listed}",
        evidence={
            "wait_share": figures.wait_share,
            "slowest_seconds": slow[0].took * 1e-9,
            "usual_seconds": usual * 1e-9,
            "samples": listed,
        },
        remedy="shrink them while packing: `packer convert … --image resize --side 256`, or leave"
        f" them out; {deeper(figures.facts)}, {unordered(figures.facts)}",
        factor=figures.factor(min(1.0, took / waited)),
    )


def head_of_line(figures: Figures, _count: WorkerCount | None) -> Finding | None:
    """Rule 9: a slow batch now and then holds up those behind it, and averages hide it.

    With one batch in ten slow, the median wait was 0.9 ms, the 99th percentile 137 ms, and a third
    of the run was waiting.
    """
    limits, facts = figures.limits, figures.facts
    severity = figures.severity()
    if severity is None or figures.wait_share is None or facts.workers < 2:  # noqa: PLR2004 - a line
        return None
    p50, p99 = (float(value) for value in np.percentile(figures.wait, (50, 99)))
    if p99 <= limits.tail * p50 or figures.mean_busy > limits.busy or not facts.in_order:
        return None
    return Finding(
        rule="head-of-line",
        severity=severity,
        verdict=f"now and then a slow batch holds up the finished ones behind it: half of the"
        f" waits are under {duration(p50)}, one in a hundred is over {duration(p99)}",
        evidence={
            "wait_share": figures.wait_share,
            "wait_p50_seconds": p50,
            "wait_p99_seconds": p99,
            "busy_share": figures.mean_busy,
        },
        remedy=f"{deeper(facts)}; or {unordered(facts)}, if the order of batches doesn't matter",
        factor=figures.factor(max(0.0, 1 - figures.mean_busy)),
    )


def too_few_workers(figures: Figures, count: WorkerCount | None) -> Finding | None:
    """Rule 7: the workers have no slack, the cores have, and more workers would be enough.

    Workers that mostly wait are no matter of number first: the rule of what they wait for speaks,
    and gives the number too.
    """
    limits, facts = figures.limits, figures.facts
    severity = figures.severity()
    step = figures.step_seconds
    if severity is None or count is None or step is None or figures.wait_share is None:
        return None
    full = facts.workers == 0 or figures.mean_busy > limits.busy
    room = (figures.cores_used or 0.0) < limits.cores_used
    works = (share(figures.blocked, figures.work) or 0.0) <= limits.blocked
    if not (full and room and works and count.suffices and count.workers > facts.workers):
        return None
    wait, compute = step
    making = float(figures.fetch.mean()) / count.workers
    return Finding(
        rule="too-few-workers",
        severity=severity,
        verdict=f"{facts.workers} workers can't keep up, and {facts.cores} cores have room for more"
        if facts.workers
        else "nothing is loaded while the loop computes: there are no workers",
        evidence={
            "wait_share": figures.wait_share,
            "busy_share": figures.mean_busy,
            "cores_used_share": "unknown" if figures.cores_used is None else figures.cores_used,
            **{f"{name} cap": f"{cap:.0f} workers" for name, cap in count.caps.items()},
        },
        remedy=workers(facts, count),
        factor=(wait + compute) / max(compute, making),
    )
