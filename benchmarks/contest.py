"""A contest: what each contestant's turns cost, and what is asked of whom."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.cost import Cost


@dataclass(frozen=True, slots=True)
class Goal:
    """What a contestant is to reach."""

    contestant: str
    measure: Literal["ratio", "rate", "peak", "processor", "added", "least", "most"]
    """`ratio`: speed, divided by that of `against`; `rate`: bytes per second; `peak`: bytes, if
    there is an `against` divided by its own; `processor`: processor time, divided by that of
    `against`; `added`: processor time beyond that of `against`, seconds for each `unit`; `least`
    and `most`: what the column `against` says."""
    bound: float
    """At least this for `ratio`, `rate` and `least`, at most for the others."""
    against: str | None = None
    unit: str = ""
    """Singular; what a turn deals with."""
    units: int = 1
    """How many of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The outcome of contestants who did the same work in turns."""

    title: str
    cache: str
    """State of the page cache when a turn began, as far as the input goes."""
    samples: int
    """Samples that a turn deals with."""
    nbytes: int
    """Bytes of images that a turn deals with."""
    costs: Mapping[str, Sequence[Cost]]
    """By contestant, round by round."""
    baselines: tuple[str, ...] = ()
    """Contestants that the others are compared with."""
    goals: tuple[Goal, ...] = ()
    columns: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What else was measured, by the title of a column and the contestant."""
    remarks: tuple[str, ...] = field(default=())

    def ratios(self, contestant: str, against: str) -> list[float]:
        """Says for each round how many times as fast as another the contestant was."""
        pairs = zip(self.costs[against], self.costs[contestant], strict=True)
        return [other.seconds / own.seconds for other, own in pairs]

    def spread(self, contestant: str, against: str) -> tuple[float, float, float]:
        """Gives lower quartile, median and upper quartile of these ratios."""
        ratios = self.ratios(contestant, against)
        if len(ratios) == 1:
            return ratios[0], ratios[0], ratios[0]
        lower, middle, upper = statistics.quantiles(ratios, n=4, method="inclusive")
        return lower, middle, upper

    def processor_ratios(self, contestant: str, against: str) -> list[float]:
        """Says for each round how many times the processor time of another the contestant took."""
        pairs = zip(self.costs[contestant], self.costs[against], strict=True)
        return [own.cpu / other.cpu for own, other in pairs]

    def added(self, contestant: str, against: str) -> list[float]:
        """Says for each round how many seconds of the processor the contestant took more."""
        pairs = zip(self.costs[contestant], self.costs[against], strict=True)
        return [own.cpu - other.cpu for own, other in pairs]

    def seconds(self, contestant: str) -> float:
        """Gives the median over the rounds."""
        return statistics.median(cost.seconds for cost in self.costs[contestant])

    def peak(self, contestant: str) -> int | None:
        """Gives the largest memory of any round; None where it wasn't looked at."""
        peaks = [cost.peak for cost in self.costs[contestant] if cost.peak is not None]
        return max(peaks, default=None)

    def reached(self, goal: Goal) -> float:
        """Gives what a goal's contestant reached, in the goal's measure."""
        if goal.measure == "rate":
            return self.nbytes / self.seconds(goal.contestant)
        if goal.against is None:
            return float(self.peak(goal.contestant) or 0)
        return self._compared(goal, goal.contestant, goal.against)

    def _compared(self, goal: Goal, own: str, other: str) -> float:
        if goal.measure in {"least", "most"}:
            return self.columns[other][own]
        if goal.measure == "ratio":
            return self.spread(own, other)[1]
        if goal.measure == "processor":
            return statistics.median(self.processor_ratios(own, other))
        if goal.measure == "added":
            return statistics.median(self.added(own, other)) / goal.units
        return (self.peak(own) or 0) / (self.peak(other) or 1)

    def is_met(self, goal: Goal) -> bool:
        """Says whether a goal was reached."""
        reached = self.reached(goal)
        at_least = goal.measure in {"ratio", "rate", "least"}
        return reached >= goal.bound if at_least else reached <= goal.bound
