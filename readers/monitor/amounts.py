"""Times, shares and sizes as people read them."""

from __future__ import annotations

_MILLI, _MICRO = 1e-3, 1e-6
_FEW = 10.0


def duration(seconds: float) -> str:
    """Writes a time in the unit that suits it."""
    if not seconds:
        return "0"
    if abs(seconds) >= 1:
        return f"{seconds:.2f} s"
    if abs(seconds) >= _MILLI:
        value, unit = seconds / _MILLI, "ms"
    else:
        value, unit = seconds / _MICRO, "µs"
    return f"{value:.1f} {unit}" if value < _FEW else f"{value:.0f} {unit}"


def percent(share: float) -> str:
    """Writes a share."""
    return f"{share:.1%}" if 0 < abs(share) < _FEW / 100 else f"{share:.0%}"


def byte_size(nbytes: float) -> str:
    """Writes a number of bytes in decimal units."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(nbytes) < 1000:  # noqa: PLR2004 - decimal units
            return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"
