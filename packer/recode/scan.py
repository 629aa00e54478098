"""Codes coefficients as one baseline scan with restart markers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from packer.recode.coefficients import Coefficients
from packer.recode.encode import ac_to_runs, count_dc, encode
from packer.recode.huffman import optimal_table
from packer.recode.interval import LONGEST, intervals
from packer.recode.status import check
from readers.errors import NotRecodableError

_SYMBOLS = 256
_TABLE_SIZE = 16 + _SYMBOLS
_DC, _AC = 0x00, 0x10
"""Kinds of Huffman tables in the first byte of DHT, with the number in the lower four bits."""
_SEGMENT_ROOM = 8
_EXTRA_BITS = np.arange(_SYMBOLS, dtype=np.int64) & 15
"""Bits that follow the code of a symbol."""


@dataclass(frozen=True, slots=True)
class CodedScan:
    """A scan."""

    interval: int
    """MCUs of a restart segment."""
    tables: tuple[bytes, ...]
    """Contents of the DHT segments."""
    pixels: NDArray[np.uint8]
    """The coded pixels, with restart markers."""
    lengths: NDArray[np.uint16]
    """Bytes of each restart segment, the marker that ends it included."""


def code_scan(coefficients: Coefficients) -> CodedScan:
    """Codes all components in one scan, and uses up the coefficients' memory.

    Raises:
        NotRecodableError: A coefficient is too large for 8-bit samples, or an MCU takes more bytes
            than the length of a segment can say.
    """
    picture, units = coefficients, coefficients.units()
    counts = _no_counts(picture)
    check(ac_to_runs(picture.blocks, picture.blocks.view(np.uint64), units, picture.mcus, counts))
    ac = _Tables(_AC, counts)
    dc = _dc_tables(picture, units, picture.columns)
    for interval in intervals(picture.columns, picture.mcus, (ac.bits + dc.bits) // 8):
        dc = _dc_tables(picture, units, interval)
        segments = picture.mcus // interval
        room = 2 * ((ac.bits + dc.bits) // 8) + _SEGMENT_ROOM * (segments + 1)
        out = np.empty(room, np.uint8)
        lengths = np.empty(segments, np.int64)
        filled = encode(
            picture.blocks, units, picture.mcus, picture.columns, interval, dc.codes, ac.codes,
            out, lengths,
        )  # fmt: skip
        if int(lengths.max()) <= LONGEST:
            tables = (*dc.contents, *ac.contents)
            return CodedScan(interval, tables, out[:filled], lengths.astype(np.uint16))
    raise NotRecodableError(f"an MCU of more than {LONGEST} bytes")


def _no_counts(picture: Coefficients) -> NDArray[np.int64]:
    return np.zeros((min(2, len(picture.planes)), _SYMBOLS), np.int64)


def _dc_tables(picture: Coefficients, units: NDArray[np.int64], interval: int) -> _Tables:
    counts = _no_counts(picture)
    check(count_dc(picture.blocks, units, picture.mcus, picture.columns, interval, counts))
    return _Tables(_DC, counts)


class _Tables:
    """The Huffman tables of one kind.

    Attributes:
        contents: Content of a DHT segment for each.
        codes: Code of each symbol as length << 32 | code: int64, shape (tables, 256).
        bits: Bits that all counted symbols take, with the bits that follow them.
    """

    def __init__(self, kind: int, counts: NDArray[np.int64]) -> None:
        self.codes = np.empty((len(counts), _SYMBOLS), np.int64)
        contents = []
        for number, (count, codes) in enumerate(zip(counts, self.codes, strict=True)):
            table = np.empty(_TABLE_SIZE, np.uint8)
            filled = optimal_table(count, table, codes)
            contents.append(bytes([kind | number]) + table[:filled].tobytes())
        self.contents = tuple(contents)
        self.bits = int((counts * ((self.codes >> 32) + _EXTRA_BITS)).sum())
