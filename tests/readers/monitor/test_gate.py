from __future__ import annotations

from dataclasses import replace

import pytest

from readers.errors import OptionError
from readers.monitor.gate import GateLimits, gate_text, judge
from readers.monitor.recording import Recording
from tests.recordings import FACTS, Plant, simulate

NOISE = (0.0, 3.0, -2.0, 25.0, 1.0)
"""Milliseconds that five runs differ by: one of them is far off."""


def runs(work: float, collate: float = 1.0, cpu: float | None = 0.9) -> list[Recording]:
    facts = replace(FACTS, workers=1)
    return [
        simulate(
            lambda _batch, _worker, noise=noise: Plant(  # type: ignore[misc]
                dataset=work, transform=0, collate=collate + noise + 2, cpu=cpu
            ),
            facts=facts,
            batches=40,
            compute=1.0,
        )
        for noise in NOISE
    ]


@pytest.mark.parametrize(
    ("new", "failing"),
    [
        (runs(100), []),
        (runs(104), []),
        (runs(107), ["cpu_per_sample"]),
        (runs(100, collate=14), ["samples_per_second"]),
        (runs(150), ["samples_per_second", "cpu_per_sample"]),
        (runs(60), []),
    ],
    ids=["same", "a little", "cpu", "slow", "both", "better"],
)
def test_medians_decide(new: list[Recording], failing: list[str]) -> None:
    result = judge(runs(100), new, GateLimits())
    assert [item.name for item in result.comparisons if not item.passed] == failing
    assert result.passed == (not failing)
    assert ("FAILED" in gate_text(result)) == bool(failing)


def test_too_few_runs_are_not_judged_unless_told() -> None:
    with pytest.raises(OptionError, match="--runs-at-least"):
        judge(runs(100)[:4], runs(100), GateLimits())
    assert judge(runs(100)[:1], runs(100)[:1], GateLimits(runs_at_least=1)).passed
    with pytest.raises(OptionError, match="no batches"):
        judge([Recording(FACTS)], runs(100), GateLimits(runs_at_least=1))


def test_without_cpu_times_throughput_decides_alone() -> None:
    result = judge(runs(100, cpu=None), runs(105, cpu=None), GateLimits())
    assert [item.name for item in result.comparisons] == ["samples_per_second"]
    assert "throughput alone" in gate_text(result)
