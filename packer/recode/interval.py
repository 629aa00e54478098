"""How many MCUs a restart segment gets.

A segment never crosses the end of a row of MCUs, so the interval divides the MCUs of a row. Short
segments let a region be cut out closely; each costs its marker, half a byte of filling up and the
prediction of its first DC coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator

_SEGMENT_COST = 4
"""Bytes that a segment costs: on average of ImageNet's photographs 3.7."""
_SHARE = 75
"""Of so many bytes of coded pixels, the segments may cost one. Since only divisors of a row do,
they cost half of it on average. Twice as many make random crops decode 5 % faster."""
LONGEST = 65_535
"""Largest interval that DRI holds, and largest length of a segment that a dataset holds."""


def intervals(columns: int, mcus: int, nbytes: int) -> Iterator[int]:
    """Gives the intervals to try: the one whose segments are cheap enough, then shorter ones.

    Args:
        columns: MCUs of a row, 1 to 8191 (65535 pixels in blocks of 8).
        mcus: MCUs of the picture.
        nbytes: Size of the coded pixels with a segment a row. It depends on nothing but the
            picture, so that a rewritten file is rewritten to itself.
    """
    divisors = [one for one in range(1, columns + 1) if columns % one == 0]
    affordable = nbytes // (_SEGMENT_COST * _SHARE)
    cheap = [one for one in divisors if mcus // one <= affordable]
    longest = cheap[0] if cheap else columns
    yield from (one for one in reversed(divisors) if one <= longest)
