"""What a diagnosis says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from readers.monitor.amounts import byte_size, duration, percent

Severity = Literal["alarm", "note"]
"""`alarm`: act; `note`: worth knowing, or an alarm that isn't quite over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause that was found."""

    rule: str
    severity: Severity
    verdict: str
    """What is the matter, in words."""
    evidence: Mapping[str, float | int | str]
    """The numbers; the end of a name gives the unit: `_share`, `_seconds`, `_bytes`."""
    remedy: str
    """What to do; names the command or the option."""
    weight: float = 1.0
    """Part of the time of making batches that this cause accounts for."""
    factor: float | None = None
    """How many times the throughput the remedy gives at most; None where it isn't about that."""

    @property
    def gain(self) -> str:
        """The expected gain, in words."""
        if self.factor is None:
            return "the run goes on"
        return f"up to {self.factor:.1f} times the throughput"


def finding_text(finding: Finding) -> str:
    """Puts a finding into lines."""
    numbers = ", ".join(f"{name} {value}" for name, value in evidence_items(finding))
    return (
        f"{finding.severity}: {finding.rule}: {finding.verdict}\n"
        f"  evidence: {numbers}\n"
        f"  remedy: {finding.remedy}\n"
        f"  gain: {finding.gain}"
    )


def evidence_items(finding: Finding) -> list[tuple[str, str]]:
    """Gives the evidence as names and values to read."""
    return [(_spoken(name), _shown(name, value)) for name, value in finding.evidence.items()]


def _shown(name: str, value: float | str) -> str:
    """Writes a piece of evidence in the unit that its name gives."""
    if isinstance(value, str):
        return value
    if name.endswith("_share"):
        return percent(value)
    if name.endswith("_seconds"):
        return duration(value)
    if name.endswith("_bytes"):
        return byte_size(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _spoken(name: str) -> str:
    for unit in ("_share", "_seconds", "_bytes"):
        name = name.removesuffix(unit)
    return name.replace("_", " ")
