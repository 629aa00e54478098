"""Shows results: tables in Markdown, tables within a page, and a plot."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from matplotlib.figure import Figure

from benchmarks.contest import Contest, Goal
from benchmarks.result import Result

_MEGA, _GIGA = 1e6, 1e9
_MANY = 100


def table_of(contest: Contest) -> str:
    """Writes a contest as a Markdown table, with its goals and remarks beneath."""
    baselines = contest.baselines
    head = ["", *(f"ratio to {name}" for name in baselines)]
    peaks = any(contest.peak(name) is not None for name in contest.costs)
    if baselines or not peaks:
        head += ["processor time", "samples/s", "MB/s"]
    head += ["peak memory"] if peaks else []
    head += contest.columns
    lines = [
        f"**{contest.title}**, {_amount(contest)}",
        "",
        _row(head),
        _row(["---", *["---:"] * (len(head) - 1)]),
    ]
    lines += [_row(_cells(contest, name)) for name in contest.costs]
    lines += ["", *(f"* {_told(contest, goal)}" for goal in _worth_telling(contest))]
    lines += [f"* {remark}" for remark in contest.remarks]
    return "\n".join([*lines, ""])


def put_into(page: Path, results: Sequence[Result]) -> None:
    """Renews the tables between the markers of a page.

    `<!-- benchmark:NAME -->` and `<!-- /benchmark:NAME -->` mark the place of all contests of a
    result; a text after the name chooses those whose titles begin with it.

    Raises:
        click.ClickException: A marker's end is missing.
    """
    text = page.read_text(encoding="utf-8")
    for result in results:
        marker = re.search(f"<!-- benchmark:{result.name}(?: (.+?))? -->", text)
        if marker is None:
            continue
        end = text.find(f"<!-- /benchmark:{result.name} -->", marker.end())
        if end < 0:
            raise click.ClickException(f"{page}: {marker[0]} has no end")
        chosen = [one for one in result.contests if one.title.startswith(marker[1] or "")]
        shown = "\n".join([_heading(result), "", *map(table_of, chosen)])
        text = f"{text[: marker.end()]}\n{shown}{text[end:]}"
    page.write_text(text, encoding="utf-8")


def draw(results: Sequence[Result], path: Path) -> None:
    """Plots every ratio, median and range, against the first baseline of its contest."""
    contests = [contest for result in results for contest in result.contests if contest.baselines]
    rows = [(contest, name) for contest in contests for name in contest.costs]
    figure = Figure(figsize=(9, 1 + 0.22 * (len(rows) + len(contests))), layout="constrained")
    axes = figure.subplots()
    places, labels = [], []
    at = 0.0
    for contest in contests:
        baseline = contest.baselines[0]
        for name in contest.costs:
            lower, middle, upper = contest.spread(name, baseline)
            axes.plot([lower, upper], [at, at], color="0.6", linewidth=3)
            axes.plot([middle], [at], "o", color="C0" if name != baseline else "0.3", markersize=4)
            places.append(at)
            labels.append(f"{contest.title}: {name}")
            at -= 1
        at -= 0.5
    axes.axvline(1, color="0.8", linewidth=1, zorder=0)
    axes.set_xscale("log")
    axes.set_yticks(places, labels, fontsize=7)
    axes.set_xlabel("speed, baseline of each group = 1 (median and quartiles of the rounds)")
    figure.savefig(path, dpi=110)


def _heading(result: Result) -> str:
    facts = result.environment
    systems = facts["file_systems"]
    kinds = sorted(set(map(str, systems.values()))) if isinstance(systems, dict) else []
    return (
        f"{facts['when']}, {facts['cpu']}, {facts['cores']} cores, {facts['kernel']}, "
        f"{' and '.join(kinds)}, Python {facts['python']}"
    )


def _amount(contest: Contest) -> str:
    turns = len(next(iter(contest.costs.values())))
    return f"{contest.samples:,} samples, {contest.nbytes / _MEGA:,.0f} MB, turns: {turns}"


def _cells(contest: Contest, name: str) -> list[str]:
    cells = [name]
    cells += [
        "1" if name == baseline else _spread(*contest.spread(name, baseline))
        for baseline in contest.baselines
    ]
    peak = contest.peak(name)
    if contest.baselines or peak is None:
        cpu = statistics.median(cost.cpu for cost in contest.costs[name])
        seconds = contest.seconds(name)
        cells += [
            f"{cpu:.2f} s",
            f"{contest.samples / seconds:,.0f}",
            f"{contest.nbytes / seconds / _MEGA:,.0f}",
        ]
    if peak is not None:
        cells.append(f"{peak / _MEGA:,.0f} MB")
    return [*cells, *(_number(column.get(name)) for column in contest.columns.values())]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= _MANY else f"{value:.3g}"


def _spread(lower: float, middle: float, upper: float) -> str:
    return f"{middle:.2f} ({lower:.2f} to {upper:.2f})"


def _told(contest: Contest, goal: Goal) -> str:
    reached = contest.reached(goal)
    verdict = "met" if contest.is_met(goal) else "**missed**"
    if goal.measure == "ratio":
        wanted = f"{goal.contestant} at {goal.bound:.3g} of {goal.against} or more"
        return f"{wanted}: {verdict} ({reached:.2f})"
    if goal.measure == "rate":
        wanted = f"{goal.contestant} at {goal.bound / _GIGA:g} GB/s or more"
        return f"{wanted}: {verdict} ({reached / _GIGA:.2f} GB/s)"
    if goal.measure in ("least", "most"):
        way = "or more" if goal.measure == "least" else "or less"
        return f"{goal.contestant}, {goal.against}: {goal.bound:g} {way}: {verdict} ({reached:.3g})"
    if goal.measure == "added":
        wanted = f"{goal.contestant} within {goal.bound * _MEGA:g} µs a {goal.unit} more"
        return f"{wanted}: {verdict} ({reached * _MEGA:.2f} µs)"
    if goal.against is not None:
        what = "processor time" if goal.measure == "processor" else "memory"
        wanted = f"{goal.contestant} within {goal.bound:g} times the {what} of {goal.against}"
        return f"{wanted}: {verdict} ({reached:.3f})"
    wanted = f"{goal.contestant} within {goal.bound / _MEGA:,.0f} MB"
    return f"{wanted}: {verdict} ({reached / _MEGA:,.0f} MB)"


def _worth_telling(contest: Contest) -> Iterator[Goal]:
    """Gives the goals, of those for memory only the one that came closest to its bound."""
    peaks = [goal for goal in contest.goals if goal.measure == "peak" and goal.against is None]
    yield from (goal for goal in contest.goals if goal not in peaks)
    yield from sorted(peaks, key=contest.reached)[-1:]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
