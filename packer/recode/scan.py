"""Codes coefficients as one baseline scan with restart markers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from packer.recode.coefficients import Coefficients
from packer.recode.encode import count_ac, count_dc, encode
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
    """Codes all components in one scan.

    Raises:
        NotRecodableError: A coefficient is too large for 8-bit samples, or an MCU takes more bytes
            than the length of a segment can say.
    """
    picture = coefficients
    words = picture.blocks.view(np.uint64)
    used = min(2, len(picture.layout))
    counts = np.zeros((2, _SYMBOLS), np.int64)
    check(count_ac(picture.blocks, words, picture.layout, picture.mcus, counts))
    ac = _Tables(_AC, counts[:used])
    rows = _dc_tables(picture, picture.columns, used)
    for interval in intervals(picture.columns, picture.mcus, (ac.bits + rows.bits) // 8):
        dc = _dc_tables(picture, interval, used)
        segments = picture.mcus // interval
        room = 2 * ((ac.bits + dc.bits) // 8) + _SEGMENT_ROOM * (segments + 1)
        out = np.empty(room, np.uint8)
        lengths = np.empty(segments, np.int64)
        filled = encode(
            picture.blocks, words, picture.layout, picture.mcus, picture.columns, interval,
            dc.codes, ac.codes, out, lengths,
        )  # fmt: skip
        if int(lengths.max()) <= LONGEST:
            tables = (*dc.contents, *ac.contents)
            return CodedScan(interval, tables, out[:filled], lengths.astype(np.uint16))
    raise NotRecodableError(f"an MCU of more than {LONGEST} bytes")


def _dc_tables(picture: Coefficients, interval: int, used: int) -> _Tables:
    counts = np.zeros((2, _SYMBOLS), np.int64)
    blocks, layout = picture.blocks, picture.layout
    check(count_dc(blocks, layout, picture.mcus, picture.columns, interval, counts))
    return _Tables(_DC, counts[:used])


class _Tables:
    """The Huffman tables of one kind.

    Attributes:
        contents: Content of a DHT segment for each.
        codes: Code of each symbol as length << 16 | code: int64, shape (tables, 256).
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
        self.bits = int((counts * ((self.codes >> 16) + _EXTRA_BITS)).sum())
