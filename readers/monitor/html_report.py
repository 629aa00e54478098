"""A recording as one HTML file with plots: nothing is loaded from elsewhere, nothing runs in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from readers.monitor.amounts import duration, percent
from readers.monitor.diagnosis import diagnose, headline
from readers.monitor.finding import Finding, evidence_items
from readers.monitor.plots import (
    histogram_plot,
    latency_plot,
    stage_parts,
    stages_plot,
    timeline_plot,
    wait_plot,
)
from readers.monitor.record import UNKNOWN, LoaderFacts
from readers.monitor.recording import Recording
from readers.monitor.sample_text import sample_name
from readers.monitor.summary import Spread, Summary, summarize
from readers.monitor.thresholds import Thresholds

_CODE = re.compile(r"`([^`]+)`")


def write_html_report(recording: Recording, path: Path, *, title: str = "Data loading") -> None:
    """Writes the report.

    Args:
        recording: What it is about.
        path: The file.
        title: Its heading.

    Raises:
        OSError: The file can't be written.
    """
    path.write_text(html_report(recording, title=title), "utf-8")


def html_report(recording: Recording, *, title: str = "Data loading") -> str:
    """Gives the report as HTML."""
    thresholds = Thresholds()
    summary = summarize(recording)
    style = files("readers.monitor").joinpath("assets/report.css").read_text("utf-8")
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="about">{escape(_about(recording.facts))}</p>',
        _findings(headline(recording, thresholds), diagnose(recording, thresholds)),
        _tiles(summary),
        *_plots(recording, thresholds),
        _card("Times a batch", _table(summary)),
        *_samples(recording),
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _about(facts: LoaderFacts) -> str:
    kind = "threads" if facts.threads else "workers"
    parts = [f"{facts.framework} loader", f"{facts.workers} {kind}", f"{facts.cores} cores"]
    if facts.batch_size != UNKNOWN:
        parts.append(f"batches of {facts.batch_size}")
    if facts.prefetch != UNKNOWN:
        parts.append(f"prefetch {facts.prefetch}")
    if facts.dataset:
        parts.append(f"{facts.format or 'unpacked'} dataset {facts.dataset}")
    if facts.storage:
        parts.append(f"on {facts.storage}")
    return " · ".join(parts)


def _findings(verdict: str, findings: Sequence[Finding]) -> str:
    if not findings:
        return (
            '<section class="card finding none"><h2><span class="rule">nothing found</span>'
            f"{escape(verdict)}</h2></section>"
        )
    return f'<p class="verdict">{escape(verdict)}</p>' + "\n".join(map(_finding, findings))


def _finding(finding: Finding) -> str:
    numbers = " · ".join(
        f"{escape(name)} <b>{escape(value)}</b>" for name, value in evidence_items(finding)
    )
    remedy = _CODE.sub(r"<code>\1</code>", escape(finding.remedy))
    return (
        f'<section class="card finding {finding.severity}">'
        f'<h2><span class="rule">{escape(finding.rule)}</span>{escape(finding.verdict)}</h2>'
        f'<p class="evidence">{numbers}</p>'
        f'<p class="remedy"><b>Remedy</b>{remedy}</p>'
        f'<p class="remedy"><b>Gain</b>{escape(finding.gain)}</p></section>'
    )


def _tiles(summary: Summary) -> str:
    tiles = [
        ("samples a second", summary.samples_per_second, "{:,.0f}".format),
        ("waiting", summary.wait_share, percent),
        ("CPU a sample", summary.cpu_per_sample, duration),
        ("to the first batch", summary.first_batch, duration),
        ("batches ready", summary.ready, "{:.1f}".format),
        ("samples", float(summary.samples), "{:,.0f}".format),
    ]
    shown = "".join(
        f'<div class="tile"><b>{escape(form(value))}</b><span>{name}</span></div>'
        for name, value, form in tiles
        if value is not None
    )
    return f'<div class="tiles">{shown}</div>'


def _plots(recording: Recording, thresholds: Thresholds) -> list[str]:
    if not recording.batches:
        return []
    loop = {"wait": "wait", "compute": "compute"} if recording.steps else {}
    stages = {name: name for name in ("dataset", "transform", "collate")}
    parts = {name: name for name in stage_parts(recording)}
    if len(parts) > len(stages):
        parts["dataset"] = "rest of dataset"
    cards = [_card("Where a batch's time goes", stages_plot(recording), parts)]
    if any(step.compute != UNKNOWN for step in recording.steps):
        cards.append(_card("How much the loop waits", wait_plot(recording, thresholds)))
    counted = {"dataset": "to make a batch"}
    if recording.steps:
        counted["wait"] = "to wait for one"
    if recording.batches[-1].began == UNKNOWN:
        return [*cards, _card("How often it takes how long", histogram_plot(recording), counted)]
    return [
        *cards,
        _card("The last steps", timeline_plot(recording), stages | loop),
        _card("How often it takes how long", histogram_plot(recording), counted),
    ]


def _samples(recording: Recording) -> list[str]:
    cards = []
    if recording.latencies:
        known = {latency.part for latency in recording.latencies}
        counted = {"dataset": "a sample"} | ({"read": "its reading"} if "read" in known else {})
        cards.append(_card("How long a sample takes", latency_plot(recording), counted))
    if recording.samples:
        rows = "".join(
            f"<tr><td>{escape(sample_name(slow))}</td><td>{duration(slow.took * 1e-9)}</td></tr>"
            for slow in recording.samples
        )
        cards.append(_card("The slowest samples", f"<table><tbody>{rows}</tbody></table>"))
    return cards


def _card(heading: str, content: str, legend: dict[str, str] | None = None) -> str:
    """Frames a plot; the legend gives names by series, the class of their colour."""
    keys = "".join(
        f'<span><i class="{series}"></i>{name}</span>' for series, name in (legend or {}).items()
    )
    shown = f'<div class="legend">{keys}</div>' if keys else ""
    inner = f'{shown}<div class="scroll">{content}</div>'
    return f'<section class="card"><h2>{heading}</h2>{inner}</section>'


def _table(summary: Summary) -> str:
    head = "".join(f"<th>{name}</th>" for name in Spread.__slots__)
    rows = "".join(
        f"<tr><td>{name}</td>"
        + "".join(f"<td>{duration(getattr(spread, column))}</td>" for column in Spread.__slots__)
        + "</tr>"
        for name, spread in summary.stages.items()
    )
    busy = "".join(
        f'<tr><td>{escape(name)}</td><td colspan="{len(Spread.__slots__)}">busy {percent(value)}'
        "</td></tr>"
        for name, value in summary.busy.items()
    )
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}{busy}</tbody></table>"
