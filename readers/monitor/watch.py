"""Alarms that are raised once and cleared once, in a run that goes on."""

from __future__ import annotations

from dataclasses import dataclass

from readers.monitor.diagnosis import diagnose
from readers.monitor.finding import Finding
from readers.monitor.recording import Recording
from readers.monitor.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class Change:
    """What a look changed."""

    raised: tuple[Finding, ...]
    cleared: tuple[str, ...]
    """Rules."""


class Watch:
    """Looks at one window after the other.

    A finding is raised when it's an alarm, and stays until it is gone: between the two limits,
    where it is a note, nothing changes, so an alarm doesn't flutter.
    """

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self._standing: frozenset[str] = frozenset()

    def look(self, window: Recording) -> Change:
        """Diagnoses a window and tells what is new."""
        findings = {finding.rule: finding for finding in diagnose(window, self._thresholds)}
        raised = tuple(
            finding
            for rule, finding in findings.items()
            if finding.severity == "alarm" and rule not in self._standing
        )
        cleared = tuple(sorted(self._standing - findings.keys()))
        self._standing = (self._standing | {finding.rule for finding in raised}) - set(cleared)
        return Change(raised, cleared)
