"""What turns up while a source is looked through, gathered into its report."""

from __future__ import annotations

from collections import Counter

from packer.protocols import Note, SourceReport

_MAX_NAMED = 100


class Findings:
    """Gathers what was left out.

    Attributes:
        litter: Files of operating systems and editors so far.
    """

    def __init__(self) -> None:
        self.litter = 0
        self._notes: list[Note] = []
        self._counts: Counter[str] = Counter()

    def note(self, path: str, reason: str) -> None:
        """Records a path; of those with one reason, the first hundred are named."""
        self._counts[reason] += 1
        if self._counts[reason] <= _MAX_NAMED:
            self._notes.append(Note(path, reason))

    def report(self) -> SourceReport:
        """Sums up; beyond a hundred paths with one reason, the rest are a number."""
        more = [
            Note("…", f"{reason} ({count - _MAX_NAMED} more)")
            for reason, count in self._counts.items()
            if count > _MAX_NAMED
        ]
        return SourceReport(litter=self.litter, notes=(*self._notes, *more))
