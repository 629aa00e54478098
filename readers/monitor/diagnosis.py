"""Verdicts on a recording: what is the matter, by which numbers, and what to do.

A loader that keeps up gets no finding, whatever its stages cost. One that doesn't gets one cause,
in this order: how batches travel (they are finished, and late all the same; one worker is slow;
single samples or batches are), then what they wait for while being made, then, where the CPU is
what they need and there is more of it, the number of workers. Several causes of the last kind
are named only where the smaller ones weigh at least half as much as the largest.
"""

from __future__ import annotations

from readers.monitor.amounts import percent
from readers.monitor.figures import Figures
from readers.monitor.finding import Finding
from readers.monitor.recording import Recording
from readers.monitor.rules import epoch_start, hand_over, health, stages
from readers.monitor.thresholds import Thresholds
from readers.monitor.worker_count import Machine, WorkerCount, worker_count

_HEALTH = (health.stuck, health.shared_memory)
"""What ends a run; judged at once, without patience."""
_TRAVEL = (
    hand_over.hand_off,
    hand_over.imbalance,
    hand_over.slow_samples,
    hand_over.head_of_line,
)
_BLOCKED = (stages.storage, stages.pixels_from_afar, stages.remote_storage)
_STAGES = (stages.decode, stages.transform, stages.collate, stages.contention)
_SLOW_CHANGE = (health.memory_growth, epoch_start.first_batch, epoch_start.paddle_persistent)

_NOTHING = Thresholds()


def diagnose(
    recording: Recording,
    thresholds: Thresholds = _NOTHING,
    machine: Machine | None = None,
) -> list[Finding]:
    """Finds what is the matter with a loader, the dominant cause first.

    Args:
        recording: The whole run, or its last batches (`readers.monitor.window.last`).
        thresholds: Limits.
        machine: What else is known of the machine, for the advice on workers.

    Returns:
        Findings; none for a loader that keeps up and is well.
    """
    figures = Figures(recording, thresholds)
    found = [finding for rule in _HEALTH if (finding := rule(figures))]
    if figures.enough:
        found += _bottleneck(figures, worker_count(figures, machine or Machine()))
    return found + [finding for rule in _SLOW_CHANGE if (finding := rule(figures))]


def headline(recording: Recording, thresholds: Thresholds = _NOTHING) -> str:
    """Rule 0: says in a line how much the loop waits."""
    figures = Figures(recording, thresholds)
    waits = figures.wait_share
    if waits is None:
        return "no training loop was seen: only what the workers did is known"
    if not figures.enough:
        return f"too early to judge: {figures.wait.size} steps seen"
    shown = percent(waits)
    if waits < thresholds.fine:
        return f"fine: the loop waits {shown} of the time"
    if waits <= thresholds.bound:
        return f"moderately input-bound: the loop waits {shown} of the time"
    return f"input-bound: the loop waits {shown} of the time"


def _bottleneck(figures: Figures, count: WorkerCount | None) -> list[Finding]:
    for rule in (*_TRAVEL, *_BLOCKED, hand_over.too_few_workers):
        finding = rule(figures, count)
        if finding is not None:
            return [finding]
    found = [finding for rule in _STAGES if (finding := rule(figures, count))]
    if not found:
        unexplained = stages.unexplained(figures, count)
        return [unexplained] if unexplained else []
    found.sort(key=lambda finding: -finding.weight)
    least = figures.limits.minor * found[0].weight
    return [finding for finding in found if finding.weight >= least]
