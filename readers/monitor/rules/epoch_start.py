"""Rules on the start of an epoch, and what Paddle's persistent workers cost there."""

from __future__ import annotations

from statistics import median

from readers.monitor.amounts import duration, percent
from readers.monitor.figures import Figures
from readers.monitor.finding import Finding
from readers.monitor.record import UNKNOWN

_EPOCHS = 2
"""The first epoch starts everything: nothing can be said before the second."""


def first_batch(figures: Figures) -> Finding | None:
    """Rule 15: the first batch of each later epoch comes late."""
    facts, limits = figures.facts, figures.limits
    late = _later_first_waits(figures)
    step = figures.step_seconds
    if not late or step is None:
        return None
    usual = median(figures.wait + figures.compute)
    wait, lost = median(late), sum(late)
    part = lost / (lost + float((figures.wait + figures.compute).sum()))
    if wait <= limits.first_batch * usual or part <= limits.fine:
        return None
    if facts.framework == "paddle" and facts.persistent and wait >= limits.paddle_poll:
        return None
    if facts.persistent or not facts.workers:
        remedy = "look at what the sampler and the dataset do when an epoch begins"
    elif facts.framework == "paddle":
        remedy = (
            "start less in each worker; persistent_workers=True costs 0.5 s an epoch in Paddle"
            f" 3.3.1 and hangs with streams, so it pays only over 0.5 s (here {duration(wait)})"
        )
    elif facts.framework == "megengine":
        remedy = (
            "open less when a worker starts: MegEngine starts them anew each epoch;"
            " `MonitoredLoader` keeps them"
        )
    else:
        remedy = "persistent_workers=True; open less when a worker starts"
    return Finding(
        rule="first-batch",
        severity="alarm" if part > limits.bound else "note",
        verdict=f"each epoch's first batch takes {duration(wait)}, {percent(part)} of the time",
        evidence={
            "first_batch_seconds": wait,
            "usual_step_seconds": float(usual),
            "lost_share": part,
            "epochs": len(late) + 1,
        },
        remedy=remedy,
        factor=1 / (1 - part),
    )


def paddle_persistent(figures: Figures) -> Finding | None:
    """Paddle's persistent workers: half a second an epoch, and a hang with streams."""
    facts, limits = figures.facts, figures.limits
    if facts.framework != "paddle" or not facts.persistent or not facts.workers:
        return None
    if facts.length == UNKNOWN:
        return Finding(
            rule="paddle-persistent-stream",
            severity="alarm",
            verdict="Paddle 3.3.1 hangs with persistent workers and an IterableDataset, at the end"
            " of the first or in the second epoch",
            evidence={"persistent_workers": "True", "dataset": "a stream"},
            remedy="persistent_workers=False",
        )
    late = _later_first_waits(figures)
    if not late or median(late) < limits.paddle_poll:
        return None
    epoch = max(step.step for step in figures.recording.steps) * sum(figures.step_seconds or (0, 0))
    return Finding(
        rule="paddle-persistent",
        severity="note",
        verdict=f"Paddle's persistent workers sleep half a second when an epoch begins: the first"
        f" batch takes {duration(median(late))}",
        evidence={"first_batch_seconds": median(late), "epoch_seconds": epoch},
        remedy="persistent_workers=False, unless starting a worker takes over half a second",
        factor=(epoch + median(late)) / max(epoch, 1e-9),
    )


def _later_first_waits(figures: Figures) -> list[float]:
    first = {step.epoch: step.wait * 1e-9 for step in figures.recording.steps if step.step == 0}
    return [first[epoch] for epoch in sorted(first)[_EPOCHS - 1 :]]
