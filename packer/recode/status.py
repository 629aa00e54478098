"""What a kernel found wrong with the coded pixels, as it says so: a negative number."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from readers.errors import NotRecodableError

CUT_SHORT = -1
BAD_CODE = -2
RUN_PAST_BLOCK = -3
LEFT_OVER = -4
OUT_OF_RANGE = -5
NO_RESTART = -6
WRONG_RESTART = -7
STRAY_MARKER = -8
BAD_TABLE = -9

REASONS: Mapping[int, str] = MappingProxyType(
    {
        CUT_SHORT: "damaged: the coded pixels end early",
        BAD_CODE: "damaged: a Huffman code that isn't in the table",
        RUN_PAST_BLOCK: "damaged: a run of zeros that leaves its block or its segment",
        LEFT_OVER: "damaged: bytes left over among the coded pixels",
        OUT_OF_RANGE: "damaged: a coefficient beyond what 8-bit samples have",
        NO_RESTART: "damaged: restart markers are missing",
        WRONG_RESTART: "damaged: restart markers out of order",
        STRAY_MARKER: "damaged: bytes FF among the coded pixels that are no marker",
        BAD_TABLE: "damaged: an impossible Huffman table",
    }
)


def check(status: int) -> None:
    """Turns a negative status into its refusal.

    Raises:
        NotRecodableError: It is negative.
    """
    if status < 0:
        raise NotRecodableError(REASONS[status])
