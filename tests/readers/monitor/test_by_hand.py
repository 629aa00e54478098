from __future__ import annotations

import pytest

from readers.errors import OptionError
from readers.monitor.by_hand import DataLoadingMonitor, LoadingStats


def test_stats_are_of_the_window() -> None:
    monitor = DataLoadingMonitor(window=3)
    assert monitor.get_stats() == LoadingStats(
        count=0, load_mean=0, load_p50=0, load_p90=0, load_p99=0, compute_mean=0, ratio=0
    )
    for load in (100.0, 1.0, 2.0, 3.0):
        monitor.record(load, 8.0)
    stats = monitor.get_stats()
    assert (stats.count, stats.load_mean, stats.load_p50, stats.compute_mean) == (3, 2, 2, 8)
    assert stats.ratio == pytest.approx(6 / 30)


def test_the_alert_comes_once_and_again_after_it_was_over() -> None:
    alerts: list[LoadingStats] = []
    monitor = DataLoadingMonitor(window=2, alert_ratio=0.4, on_alert=alerts.append)
    seen = []
    for load in (9.0, 9.0, 9.0, 4.0, 4.0, 9.0, 1.0, 1.0, 9.0, 9.0):
        monitor.record(load_ms=load, compute_ms=10.0 - load)
        seen.append(len(alerts))
    assert seen == [0, 1, 1, 1, 1, 1, 1, 1, 2, 2]
    assert alerts[0].ratio == pytest.approx(0.9)


@pytest.mark.parametrize("options", [{"window": 0}, {"alert_ratio": 0.0}, {"alert_ratio": 20.0}])
def test_options_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(OptionError):
        DataLoadingMonitor(**options)  # type: ignore[arg-type]


def test_times_that_are_none_are_refused() -> None:
    monitor = DataLoadingMonitor()
    with pytest.raises(OptionError):
        monitor.record(-1.0, 2.0)
    with pytest.raises(OptionError):
        monitor.record(1.0, float("nan"))
