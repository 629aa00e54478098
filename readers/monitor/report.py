"""A recording in words: the verdict, what was found, and the figures."""

from __future__ import annotations

from readers.monitor.diagnosis import diagnose, headline
from readers.monitor.finding import Finding, finding_text
from readers.monitor.recording import Recording
from readers.monitor.summary import summarize, summary_text


def report_text(recording: Recording) -> str:
    """Writes what `packer monitor summarize` and `print(loader.report())` show."""
    findings = diagnose(recording)
    return "\n\n".join([verdict_text(recording, findings), summary_text(summarize(recording))])


def verdict_text(recording: Recording, findings: list[Finding]) -> str:
    """Writes the headline and the findings."""
    return "\n".join([headline(recording), *(finding_text(finding) for finding in findings)])
