"""What turns up while a source is looked through, gathered into its report."""

from __future__ import annotations

from collections import Counter

from packer.protocols import SourceReport
from readers.manifest import Skipped

_MAX_NAMED = 100


class Findings:
    """Gathers what was left out or is odd.

    Attributes:
        litter: Files of operating systems and editors so far.
    """

    def __init__(self) -> None:
        self.litter = 0
        self._notes: list[Skipped] = []
        self._counts: Counter[tuple[str, bool]] = Counter()

    def note(self, path: str, reason: str, *, used: bool = False) -> None:
        """Records a path; of those with one reason, the first hundred are named.

        Args:
            path: What was found.
            reason: What is to be said of it.
            used: Whether it is part of the source all the same.
        """
        self._counts[reason, used] += 1
        if self._counts[reason, used] <= _MAX_NAMED:
            self._notes.append(Skipped(path, _action(used=used), reason))

    def report(self) -> SourceReport:
        """Sums up; beyond a hundred paths with one reason, the rest are a number."""
        more = [
            Skipped("…", _action(used=used), f"{reason} ({count - _MAX_NAMED} more)")
            for (reason, used), count in self._counts.items()
            if count > _MAX_NAMED
        ]
        return SourceReport(litter=self.litter, notes=(*self._notes, *more))


def _action(*, used: bool) -> str:
    return "noted" if used else "left out"
