"""Whether a change made loading slower: a gate for CI.

On a JPEG loader the throughput of single runs varied by 8 % (neighbouring runs by up to 28 %) and
the CPU time a sample by 1.3 %; medians of 5 interleaved runs agreed within 1 %, while medians of 3
were fooled once. So both are judged, by medians, and not with fewer than 5 runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from readers.errors import OptionError
from readers.monitor.amounts import duration, percent
from readers.monitor.recording import Recording
from readers.monitor.summary import summarize


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimits:
    """How much worse is too much."""

    cpu: float = 0.05
    """More CPU time a sample."""
    throughput: float = 0.10
    """Fewer samples a second."""
    runs_at_least: int = 5
    """Runs of either side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The medians of one measure."""

    name: str
    base: float
    new: float
    worse: float
    """How much worse, as a share of the base; negative: better."""
    limit: float

    @property
    def passed(self) -> bool:
        """Whether it is within the limit."""
        return self.worse <= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """What the gate says."""

    comparisons: tuple[Comparison, ...]
    base_runs: int
    new_runs: int

    @property
    def passed(self) -> bool:
        """Whether every measure is within its limit."""
        return all(comparison.passed for comparison in self.comparisons)


def judge(base: Sequence[Recording], new: Sequence[Recording], limits: GateLimits) -> GateResult:
    """Compares recordings of interleaved runs of the same work on the same machine.

    Raises:
        OptionError: There are too few runs, or runs in which nothing was measured.
    """
    for side, runs in (("base", base), ("new", new)):
        if len(runs) < limits.runs_at_least:
            raise OptionError(
                f"{len(runs)} {side} runs are too few to judge by: give"
                f" {limits.runs_at_least}, taken in turns with the other side's, or say"
                " --runs-at-least"
            )
    comparisons = []
    speeds = _measured(base, new, "samples_per_second")
    if speeds is None:
        raise OptionError("a run holds no batches: nothing to judge by")
    slower = 1 - speeds[1] / speeds[0]
    comparisons.append(
        Comparison(
            name="samples_per_second",
            base=speeds[0],
            new=speeds[1],
            worse=slower,
            limit=limits.throughput,
        )
    )
    costs = _measured(base, new, "cpu_per_sample")
    if costs is not None:
        dearer = costs[1] / costs[0] - 1
        comparisons.append(
            Comparison(
                name="cpu_per_sample", base=costs[0], new=costs[1], worse=dearer, limit=limits.cpu
            )
        )
    return GateResult(comparisons=tuple(comparisons), base_runs=len(base), new_runs=len(new))


def gate_text(result: GateResult) -> str:
    """Puts the result into lines."""
    lines = [
        f"{'passed' if comparison.passed else 'FAILED'}: {_named(comparison)},"
        f" {percent(abs(comparison.worse))} {'worse' if comparison.worse > 0 else 'better'}"
        f" (limit {percent(comparison.limit)})"
        for comparison in result.comparisons
    ]
    if len(result.comparisons) == 1:
        lines.append("CPU time a sample isn't known: judged by throughput alone")
    return "\n".join(lines)


def _named(comparison: Comparison) -> str:
    if comparison.name == "cpu_per_sample":
        return f"CPU a sample {duration(comparison.base)} -> {duration(comparison.new)}"
    return f"throughput {comparison.base:,.1f} -> {comparison.new:,.1f} samples/s"


def _measured(
    base: Sequence[Recording], new: Sequence[Recording], name: str
) -> tuple[float, float] | None:
    """Gives the medians of a figure; None unless every run of both sides has it."""
    medians = []
    for runs in (base, new):
        values = [getattr(summarize(run), name) for run in runs]
        if not values or not all(values):
            return None
        medians.append(median(values))
    return medians[0], medians[1]
