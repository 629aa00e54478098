"""What a change would give, predicted from a recording.

The model, per batch, with means over the recording::

    making  = fetch / workers                  the workers share the batches
    cores   = time on a CPU / usable cores     and the cores
    step    = max(compute, making, cores)      the loop waits for the slowest of them
    step    = fetch + compute                  without workers: one after the other

What is changed scales parts of the fetch: faster storage its blocked part; a cache of decoded
pixels takes away decoding; smaller images scale what is decoded, read and transformed by their
pixels. The present step is predicted too, and predictions are scaled by measured / predicted, so
that what the model leaves out (hand-off, variance) weighs on both alike. Uneven batches wait more
than means tell: near the knee (making = compute) the prediction is up to a tenth too good.
Rivals on the same cores aren't reckoned with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from readers.errors import OptionError
from readers.monitor.columns import mean_of_known, seconds, share
from readers.monitor.figures import Figures
from readers.monitor.recording import Recording
from readers.monitor.summary import summarize
from readers.monitor.thresholds import Thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is changed; None or 1 leaves it as it is."""

    workers: int | None = None
    storage: float = 1.0
    """How many times as fast the storage is."""
    pixels: float = 1.0
    """Ratio of an image's pixels to what they were."""
    decoded: bool = False
    """Whether pixels are kept decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a change gives."""

    change: str
    samples_per_second: float
    factor: float
    """Ratio to the recording."""
    bound_by: str
    """`compute`, `workers`, `cores` or, without workers, `loading`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Costs:
    """Mean seconds a batch; those of the fetch exclude each other."""

    decoding: float
    blocked: float
    transform: float
    rest: float
    cpu_of_rest: float
    """Part of `decoding`, `transform` and `rest` that is on a CPU, as a share."""
    compute: float
    workers: int
    cores: int

    @property
    def fetch(self) -> float:
        return self.decoding + self.blocked + self.transform + self.rest


def predict(recording: Recording, changes: Sequence[Change]) -> list[Prediction]:
    """Predicts what each change gives.

    Raises:
        OptionError: The recording holds no batches or no training loop.
    """
    costs = _costs(recording)
    measured = summarize(recording).samples_per_second
    figures = Figures(recording, Thresholds())
    step = figures.step_seconds
    if measured is None or step is None:
        raise OptionError("the recording holds no training loop: nothing to predict from")
    correction = sum(step) / _step(costs)[0]
    samples = measured * sum(step)
    predictions = []
    for change in changes:
        took, bound_by = _step(_changed(costs, change))
        took = max(costs.compute, took * correction)
        predictions.append(
            Prediction(
                change=describe(change),
                samples_per_second=samples / took,
                factor=sum(step) / took,
                bound_by=bound_by,
            )
        )
    return [*predictions, _upper_bound(samples, sum(step), costs)]


def describe(change: Change) -> str:
    """Puts a change into words."""
    parts = []
    if change.workers is not None:
        parts.append(f"{change.workers} workers")
    if change.storage != 1:
        parts.append(f"storage {change.storage:g} times as fast")
    if change.pixels != 1:
        parts.append(f"images of {change.pixels:.0%} of the pixels")
    if change.decoded:
        parts.append("a cache of decoded pixels")
    return ", ".join(parts) or "as it is"


def usual_changes(recording: Recording) -> list[Change]:
    """Lists the changes that are worth a look for any loader."""
    now = recording.facts.workers
    numbers = sorted({1, 2, max(1, now // 2), now, 2 * now, 4 * now} - {0})
    return [
        *(Change(workers=number) for number in numbers),
        Change(storage=4),
        Change(pixels=0.25),
        Change(decoded=True),
    ]


def _upper_bound(samples: float, now: float, costs: _Costs) -> Prediction:
    """The loop alone: what it would do if batches cost nothing."""
    took = max(costs.compute, 1e-9)
    return Prediction(
        change="upper bound: loading costs nothing",
        samples_per_second=samples / took,
        factor=now / took,
        bound_by="compute",
    )


def _costs(recording: Recording) -> _Costs:
    figures = Figures(recording, Thresholds())
    step = figures.step_seconds
    if not recording.batches or step is None:
        raise OptionError("the recording holds no training loop: nothing to predict from")
    dataset, transform = float(figures.dataset.mean()), float(figures.transform.mean())
    fetch = float(figures.fetch.mean())
    waits = share(figures.blocked, figures.work) or 0.0
    on_cpu = share(figures.cpu, figures.work)
    blocked = min(dataset, waits * (dataset + transform))
    decode = mean_of_known(seconds(recording.batches, "decode"))
    decoding = dataset - blocked if decode is None else min(decode, dataset - blocked)
    worked = max(1e-9, fetch - blocked)
    used = (
        worked if on_cpu is None else on_cpu * (dataset + transform) + fetch - dataset - transform
    )
    return _Costs(
        decoding=decoding,
        blocked=blocked,
        transform=transform,
        rest=fetch - decoding - blocked - transform,
        cpu_of_rest=min(1.0, used / worked),
        compute=step[1],
        workers=recording.facts.workers,
        cores=recording.facts.cores,
    )


def _changed(costs: _Costs, change: Change) -> _Costs:
    return replace(
        costs,
        workers=costs.workers if change.workers is None else change.workers,
        decoding=0.0 if change.decoded else costs.decoding * change.pixels,
        blocked=costs.blocked * change.pixels / change.storage,
        transform=costs.transform * change.pixels,
    )


def _step(costs: _Costs) -> tuple[float, str]:
    if not costs.workers:
        return costs.fetch + costs.compute, "loading"
    cores = costs.cpu_of_rest * (costs.fetch - costs.blocked) / costs.cores
    times = {"compute": costs.compute, "workers": costs.fetch / costs.workers, "cores": cores}
    bound_by = max(times, key=lambda name: times[name])
    return times[bound_by], bound_by
