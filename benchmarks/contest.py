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
    measure: Literal["ratio", "rate", "peak", "least", "most"]
    """`ratio`: speed, divided by that of `against`; `rate`: bytes per second; `peak`: bytes;
    `least` and `most`: what the column `against` says."""
    bound: float
    """At least this; at most, for `peak` and `most`."""
    against: str | None = None


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

    def seconds(self, contestant: str) -> float:
        """Gives the median over the rounds."""
        return statistics.median(cost.seconds for cost in self.costs[contestant])

    def peak(self, contestant: str) -> int | None:
        """Gives the largest memory of any round; None where it wasn't looked at."""
        peaks = [cost.peak for cost in self.costs[contestant] if cost.peak is not None]
        return max(peaks, default=None)

    def reached(self, goal: Goal) -> float:
        """Gives what a goal's contestant reached, in the goal's measure."""
        if goal.measure == "ratio" and goal.against is not None:
            return self.spread(goal.contestant, goal.against)[1]
        if goal.measure == "rate":
            return self.nbytes / self.seconds(goal.contestant)
        if goal.measure in ("least", "most") and goal.against is not None:
            return self.columns[goal.against][goal.contestant]
        return float(self.peak(goal.contestant) or 0)

    def is_met(self, goal: Goal) -> bool:
        """Says whether a goal was reached."""
        reached = self.reached(goal)
        at_most = goal.measure in ("peak", "most")
        return reached <= goal.bound if at_most else reached >= goal.bound
