"""Kernels that read coded pixels: bytes without stuffing, bits, Huffman codes.

Source: ITU-T T.81, annexes B.1.1.5 (stuffing), C (Huffman codes) and F.2.2.

A position in coded pixels is counted in bits. Reading doesn't check for their end, so callers do
after each block, and `PADDING` zero bytes follow the last one: a block has at most 64 codes of 16
bits, each with 15 further bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.recode.compiling import compiled
from packer.recode.status import (
    BAD_TABLE,
    CUT_SHORT,
    LEFT_OVER,
    NO_RESTART,
    STRAY_MARKER,
    WRONG_RESTART,
)

PADDING = 64 * (16 + 15) // 8 + 8
TABLE_SIZE = (1 << 10) + 17 + 17 + 256
"""Entries of a table for decoding, see `derive`."""

_MARKED, _RST, _CYCLE = 0xFF, 0xD0, 8
_MOST_SYMBOLS = 256
_FAST_BITS = 10
_LIMITS = 1 << _FAST_BITS
_OFFSETS = _LIMITS + 17
_SYMBOLS = _OFFSETS + 17
_LONGEST = 16

_FAST_SHIFT = np.uint64(64 - _FAST_BITS)
_CODE_SHIFT = np.uint64(64 - _LONGEST)


@compiled("int64(Array(uint8, 1, 'C', readonly=True), int64, uint8[::1], int64[::1])")
def unstuff(
    data: NDArray[np.uint8], start: int, bits: NDArray[np.uint8], bounds: NDArray[np.int64]
) -> int:
    """Copies the coded pixels of a scan without stuffed zeros and restart markers.

    Args:
        data: The file.
        start: Where the coded pixels begin.
        bits: Takes the bytes and `PADDING` zeros; as long as what is left of the file, and that.
        bounds: Takes where in `bits` each restart segment begins, and the end of the last one:
            int64, shape (segments + 1,).

    Returns:
        Where in the file the marker stands that ends the scan, or a negative status.
    """
    size = len(data)
    segments = len(bounds) - 1
    segment = 0
    position = start
    filled = 0
    bounds[0] = 0
    while position < size:
        byte = data[position]
        if byte != _MARKED:
            bits[filled] = byte
            filled += 1
            position += 1
            continue
        marker = position
        position += 1
        if position < size and data[position] == 0:
            bits[filled] = byte
            filled += 1
            position += 1
            continue
        while position < size and data[position] == _MARKED:
            position += 1
        if position >= size:
            break
        code = data[position]
        if code == 0:
            return STRAY_MARKER
        segment += 1
        bounds[min(segment, segments)] = filled
        if not (_RST <= code < _RST + _CYCLE and segment < segments):
            if segment < segments:
                return NO_RESTART
            bits[filled : filled + PADDING] = 0
            return marker
        if code != _RST + (segment - 1) % _CYCLE:
            return WRONG_RESTART
        position += 1
    return CUT_SHORT


@compiled("int64(Array(uint8, 1, 'C', readonly=True), int64, int32[::1])")
def derive(table: NDArray[np.uint8], largest: int, derived: NDArray[np.int32]) -> int:
    """Makes of a Huffman table what decodes it fast.

    Args:
        table: The number of codes of each length, 1 to 16, then their symbols; no longer than
            16 + 256.
        largest: Largest symbol that it may have.
        derived: Takes, for each 10 bits, the code that they begin with as length << 8 | symbol, 0
            for none; then for each length the first 16 bits beyond its codes; then for each length
            what to add to its code for the number of the symbol; then the symbols.

    Returns:
        0, or a negative status.
    """
    derived[:] = 0
    code = 0
    number = 0
    for length in range(1, _LONGEST + 1):
        derived[_OFFSETS + length] = number - code
        for _ in range(table[length - 1]):
            if number >= _MOST_SYMBOLS or _LONGEST + number >= len(table):
                return BAD_TABLE
            symbol = table[_LONGEST + number]
            if symbol > largest or code >= (1 << length) - 1:
                return BAD_TABLE
            derived[_SYMBOLS + number] = symbol
            if length <= _FAST_BITS:
                first = code << (_FAST_BITS - length)
                last = (code + 1) << (_FAST_BITS - length)
                derived[first:last] = length << 8 | symbol
            code += 1
            number += 1
        derived[_LIMITS + length] = code << (_LONGEST - length)
        code <<= 1
    return 0


@compiled("uint64(uint8[::1], int64)")
def window(bits: NDArray[np.uint8], position: int) -> np.uint64:
    """Reads 57 bits or more, at the upper end of 64."""
    at = np.uint64(position >> 3)  # unsigned, or each index would be asked whether it is negative
    word: np.uint64 = (
        np.uint64(bits[at]) << np.uint64(56)
        | np.uint64(bits[at + np.uint64(1)]) << np.uint64(48)
        | np.uint64(bits[at + np.uint64(2)]) << np.uint64(40)
        | np.uint64(bits[at + np.uint64(3)]) << np.uint64(32)
        | np.uint64(bits[at + np.uint64(4)]) << np.uint64(24)
        | np.uint64(bits[at + np.uint64(5)]) << np.uint64(16)
        | np.uint64(bits[at + np.uint64(6)]) << np.uint64(8)
        | np.uint64(bits[at + np.uint64(7)])
    )
    shifted: np.uint64 = word << np.uint64(position & 7)
    return shifted


@compiled("int64(uint64, int32[::1])")
def code_in(word: np.uint64, derived: NDArray[np.int32]) -> int:
    """Finds the Huffman code that bits begin with.

    Returns:
        Its length << 8 | its symbol; 0 if there is none.
    """
    found = int(derived[np.int64(word >> _FAST_SHIFT)])
    if found:
        return found
    code = int(word >> _CODE_SHIFT)
    for length in range(_FAST_BITS + 1, _LONGEST + 1):
        if code < derived[_LIMITS + length]:
            number = derived[_OFFSETS + length] + (code >> (_LONGEST - length))
            return length << 8 | int(derived[_SYMBOLS + number])
    return 0


@compiled("int64(uint64, int64, int64)")
def number_in(word: np.uint64, skipped: int, size: int) -> int:
    """Reads an unsigned number of `size` bits, 1 to 16, after `skipped` others."""
    return int((word << np.uint64(skipped)) >> np.uint64(64 - size))


@compiled("int64(uint64, int64, int64)")
def value_in(word: np.uint64, skipped: int, size: int) -> int:
    """Reads a signed value of `size` bits, 1 to 16, after `skipped` others (T.81, F.2.2.1)."""
    value = number_in(word, skipped, size)
    if value < 1 << (size - 1):
        value -= (1 << size) - 1
    return value


@compiled("int64(int64, int64)")
def segment_status(position: int, end: int) -> int:
    """Judges where the reading of a restart segment ended.

    Returns:
        0 if only the bits that fill up the last byte are left, or a negative status.
    """
    if position > end:
        return CUT_SHORT
    if position + 8 <= end:
        return LEFT_OVER
    return 0
