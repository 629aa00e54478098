"""A fault of a dataset."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that isn't as it should be."""

    reason: str
    file: str | None = None
    """Name of the file of the dataset."""
    offset: int | None = None
    """Byte in the file."""
    key: str | None = None
    """Key of the sample, or of the one nearest before."""

    def __str__(self) -> str:
        parts = [
            self.file,
            None if self.offset is None else f"byte {self.offset}",
            None if self.key is None else f"sample {self.key!r}",
        ]
        where = ", ".join(part for part in parts if part)
        return f"{where}: {self.reason}" if where else self.reason
