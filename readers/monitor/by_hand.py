"""For people with their own loop: load and compute times recorded by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from readers.errors import OptionError
from readers.monitor.columns import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingStats:
    """The last steps in figures; times in milliseconds, as they were recorded."""

    count: int
    """Steps in the window."""
    load_mean: float
    load_p50: float
    load_p90: float
    load_p99: float
    compute_mean: float
    ratio: float
    """Sum of load / (sum of load + sum of compute)."""


class DataLoadingMonitor:
    """Keeps the last steps' load and compute times, and calls back when loading takes too much.

    The callback comes once when the window is full and the ratio is over `alert_ratio`, and again
    only after it was under half of that.

    Example:
        >>> monitor = DataLoadingMonitor(window=2, alert_ratio=0.2, on_alert=print)
        >>> monitor.record(load_ms=1.0, compute_ms=9.0)
        >>> monitor.record(load_ms=3.0, compute_ms=7.0)
        >>> monitor.get_stats().ratio
        0.2
    """

    def __init__(
        self,
        *,
        window: int = 200,
        alert_ratio: float = 0.2,
        on_alert: Callable[[LoadingStats], None] | None = None,
    ) -> None:
        """Makes an empty monitor.

        Args:
            window: Steps that are kept.
            alert_ratio: Share of loading that is too much; the default is where TensorFlow's
                profiler calls a step highly input-bound.
            on_alert: Called with the figures.

        Raises:
            OptionError: The window is empty, or the ratio isn't between 0 and 1.
        """
        if window < 1:
            raise OptionError(f"window is {window}, but must be 1 step or more")
        if not 0 < alert_ratio < 1:
            raise OptionError(f"alert_ratio is {alert_ratio}, but must be between 0 and 1")
        self._steps: deque[tuple[float, float]] = deque(maxlen=window)
        self._window = window
        self._limit = alert_ratio
        self._on_alert = on_alert
        self._alerted = False

    def record(self, load_ms: float, compute_ms: float) -> None:
        """Takes down a step.

        Raises:
            OptionError: A time is negative or no number.
        """
        if not (load_ms >= 0 and compute_ms >= 0):
            raise OptionError(
                f"load_ms is {load_ms} and compute_ms {compute_ms}, but times are 0 or more"
            )
        self._steps.append((load_ms, compute_ms))
        if self._on_alert is None or len(self._steps) < self._window:
            return
        ratio = _ratio(np.array(self._steps))
        if ratio > self._limit and not self._alerted:
            self._alerted = True
            self._on_alert(self.get_stats())
        elif ratio < self._limit / 2:
            self._alerted = False

    def get_stats(self) -> LoadingStats:
        """Gives the figures of the steps in the window; zeros before the first."""
        times = np.array(self._steps, np.float64).reshape(-1, 2)
        if not len(times):
            times = np.zeros((1, 2))
        load, compute = times.T
        p50, p90, p99 = (float(value) for value in np.percentile(load, (50, 90, 99)))
        return LoadingStats(
            count=len(self._steps),
            load_mean=float(load.mean()),
            load_p50=p50,
            load_p90=p90,
            load_p99=p99,
            compute_mean=float(compute.mean()),
            ratio=_ratio(times),
        )


def _ratio(times: Floats) -> float:
    whole = float(times.sum())
    return float(times[:, 0].sum()) / whole if whole else 0.0
