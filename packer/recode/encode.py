"""Kernels that code coefficients as one baseline scan with restart markers (T.81, F.1.2).

Blocks that only fill up the last MCU of a row or a column show nothing; they are coded as cheaply
as can be, like the block before and without AC coefficients, whatever the source had there. The
first component uses Huffman tables number 0, the others number 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.recode.compiling import compiled
from packer.recode.status import OUT_OF_RANGE

MOST_BITS_DC = 11
MOST_BITS_AC = 10
"""Bits of the largest values that 8-bit samples give (T.81, F.1.2.1.2 and F.1.2.2.1)."""

_SIZES = np.array([value.bit_length() for value in range(1 << MOST_BITS_DC)], np.uint8)
"""Bits of a magnitude."""
_LARGEST_DC = (1 << MOST_BITS_DC) - 1
_LARGEST_AC = (1 << MOST_BITS_AC) - 1
_ZEROS_16 = 0xF0
_END_OF_BLOCK = 0x00
_FOUR_ZEROS = np.uint64(0)
_WORD_BITS = 32
_WORD = np.uint64((1 << _WORD_BITS) - 1)
_BYTE = np.uint64(0xFF)


@compiled("int64(int16[:, ::1], int64[:, ::1], int64, int64, int64, int64[:, ::1])")
def count_dc(
    blocks: NDArray[np.int16],
    layout: NDArray[np.int64],
    mcus: int,
    columns: int,
    interval: int,
    counts: NDArray[np.int64],
) -> int:
    """Counts the symbols of the DC coefficients.

    Args:
        blocks: See `packer.recode.coefficients.Coefficients`, like the next three.
        layout: See there.
        mcus: See there.
        columns: See there.
        interval: MCUs of a restart segment.
        counts: Takes how often each symbol of the two tables occurs: int64, shape (2, 256).

    Returns:
        0, or a negative status.
    """
    last = np.zeros(len(layout), np.int64)
    for mcu in range(mcus):
        row = mcu // columns
        column = mcu - row * columns
        if mcu % interval == 0:
            last[:] = 0
        for component in range(len(layout)):
            wide = layout[component, 0]
            high = layout[component, 1]
            table = min(component, 1)
            for i in range(row * high, (row + 1) * high):
                first = layout[component, 3] + i * layout[component, 2]
                for j in range(column * wide, (column + 1) * wide):
                    if i >= layout[component, 5] or j >= layout[component, 4]:
                        counts[table, 0] += 1
                        continue
                    value = np.int64(blocks[first + j, 0])
                    magnitude = abs(value - last[component])
                    last[component] = value
                    if magnitude > _LARGEST_DC:
                        return OUT_OF_RANGE
                    counts[table, _SIZES[magnitude]] += 1
    return 0


@compiled("int64(int16[:, ::1], uint64[:, ::1], int64[:, ::1], int64, int64[:, ::1])")
def count_ac(
    blocks: NDArray[np.int16],
    words: NDArray[np.uint64],
    layout: NDArray[np.int64],
    mcus: int,
    counts: NDArray[np.int64],
) -> int:
    """Counts the symbols of the AC coefficients, which no restart changes.

    Args:
        blocks: As for `count_dc`.
        words: The same memory, four coefficients a number: uint64, shape (blocks, 16).
        layout: As for `count_dc`.
        mcus: As for `count_dc`.
        counts: Takes how often each symbol of the two tables occurs: int64, shape (2, 256).

    Returns:
        0, or a negative status.
    """
    for component in range(len(layout)):
        count = counts[min(component, 1)]
        shown = layout[component, 4] * layout[component, 5]
        count[_END_OF_BLOCK] += mcus * layout[component, 0] * layout[component, 1] - shown
        for i in range(layout[component, 5]):
            first = layout[component, 3] + i * layout[component, 2]
            for j in range(first, first + layout[component, 4]):
                block = blocks[j]
                word = words[j]
                before = 0
                for quarter in range(16):
                    if word[quarter] == _FOUR_ZEROS:
                        continue
                    for k in range(max(1, 4 * quarter), 4 * quarter + 4):
                        magnitude = abs(np.int64(block[k]))
                        if magnitude == 0:
                            continue
                        if magnitude > _LARGEST_AC:
                            return OUT_OF_RANGE
                        run = k - before - 1
                        before = k
                        if run > 15:
                            count[_ZEROS_16] += run >> 4
                            run &= 15
                        count[run << 4 | np.int64(_SIZES[magnitude])] += 1
                if before != 63:
                    count[_END_OF_BLOCK] += 1
    return 0


@compiled("Tuple((int64, uint64, int64))(uint8[::1], int64, uint64, int64, int64, int64)")
def _put(
    out: NDArray[np.uint8], filled: int, held: np.uint64, waiting: int, code: int, length: int
) -> tuple[int, np.uint64, int]:
    """Adds at most 32 bits to those that wait, fewer than 32, and writes 32 of them."""
    held = held << np.uint64(length) | np.uint64(code)
    waiting += length
    if waiting < _WORD_BITS:
        return filled, held, waiting
    waiting -= _WORD_BITS
    word = np.int64((held >> np.uint64(waiting)) & _WORD)
    if word & ~(word + 0x01010101) & 0x80808080:  # perhaps a byte FF
        for shift in (24, 16, 8, 0):
            byte = (word >> shift) & 0xFF
            out[filled] = byte
            filled += 1
            if byte == 0xFF:
                out[filled] = 0
                filled += 1
    else:
        out[filled] = word >> 24
        out[filled + 1] = (word >> 16) & 0xFF
        out[filled + 2] = (word >> 8) & 0xFF
        out[filled + 3] = word & 0xFF
        filled += 4
    return filled, held, waiting


@compiled("int64(uint8[::1], int64, uint64, int64)")
def _end(out: NDArray[np.uint8], filled: int, held: np.uint64, waiting: int) -> int:
    """Writes the bits that wait, filled up with ones to whole bytes."""
    missing = -waiting % 8
    held = held << np.uint64(missing) | np.uint64((1 << missing) - 1)
    waiting += missing
    while waiting:
        waiting -= 8
        byte = np.int64((held >> np.uint64(waiting)) & _BYTE)
        out[filled] = byte
        filled += 1
        if byte == 0xFF:
            out[filled] = 0
            filled += 1
    return filled


@compiled(
    "int64(int16[:, ::1], uint64[:, ::1], int64[:, ::1], int64, int64, int64,"
    " int64[:, ::1], int64[:, ::1], uint8[::1], int64[::1])"
)
def encode(
    blocks: NDArray[np.int16],
    words: NDArray[np.uint64],
    layout: NDArray[np.int64],
    mcus: int,
    columns: int,
    interval: int,
    dc_codes: NDArray[np.int64],
    ac_codes: NDArray[np.int64],
    out: NDArray[np.uint8],
    lengths: NDArray[np.int64],
) -> int:
    """Codes a scan whose symbols were counted.

    Args:
        blocks: As for `count_dc`, like `layout`, `mcus`, `columns` and `interval`.
        words: As for `count_ac`.
        layout: See `blocks`.
        mcus: See `blocks`.
        columns: See `blocks`.
        interval: See `blocks`.
        dc_codes: Code of each symbol of the two tables as length << 16 | code: int64, shape
            (2, 256).
        ac_codes: The same for the AC coefficients.
        out: Takes the coded pixels: twice the bytes of their bits (each may need stuffing), and 8
            for each segment.
        lengths: Takes the bytes of each restart segment, with its marker: int64, shape (segments,).

    Returns:
        Bytes written to `out`.
    """
    last = np.zeros(len(layout), np.int64)
    filled = 0
    began = 0
    held = np.uint64(0)
    waiting = 0
    for mcu in range(mcus):
        row = mcu // columns
        column = mcu - row * columns
        if mcu and mcu % interval == 0:
            segment = mcu // interval - 1
            filled = _end(out, filled, held, waiting)
            out[filled] = 0xFF
            out[filled + 1] = 0xD0 + segment % 8
            filled += 2
            lengths[segment] = filled - began
            began = filled
            held = np.uint64(0)
            waiting = 0
            last[:] = 0
        for component in range(len(layout)):
            wide = layout[component, 0]
            high = layout[component, 1]
            dc_code = dc_codes[min(component, 1)]
            ac_code = ac_codes[min(component, 1)]
            for i in range(row * high, (row + 1) * high):
                first = layout[component, 3] + i * layout[component, 2]
                for j in range(column * wide, (column + 1) * wide):
                    value = last[component]
                    shown = i < layout[component, 5] and j < layout[component, 4]
                    if shown:
                        value = np.int64(blocks[first + j, 0])
                    value, last[component] = value - last[component], value
                    size = np.int64(_SIZES[abs(value)])
                    if value < 0:
                        value += (1 << size) - 1
                    code = dc_code[size]
                    filled, held, waiting = _put(
                        out, filled, held, waiting,
                        (code & 0xFFFF) << size | value, (code >> 16) + size,
                    )  # fmt: skip
                    before = 0
                    if shown:
                        block = blocks[first + j]
                        word = words[first + j]
                        for quarter in range(16):
                            if word[quarter] == _FOUR_ZEROS:
                                continue
                            for k in range(max(1, 4 * quarter), 4 * quarter + 4):
                                value = np.int64(block[k])
                                if value == 0:
                                    continue
                                run = k - before - 1
                                before = k
                                while run > 15:
                                    code = ac_code[_ZEROS_16]
                                    filled, held, waiting = _put(
                                        out, filled, held, waiting, code & 0xFFFF, code >> 16
                                    )
                                    run -= 16
                                size = np.int64(_SIZES[abs(value)])
                                if value < 0:
                                    value += (1 << size) - 1
                                code = ac_code[run << 4 | size]
                                filled, held, waiting = _put(
                                    out, filled, held, waiting,
                                    (code & 0xFFFF) << size | value, (code >> 16) + size,
                                )  # fmt: skip
                    if before != 63:
                        code = ac_code[_END_OF_BLOCK]
                        filled, held, waiting = _put(
                            out, filled, held, waiting, code & 0xFFFF, code >> 16
                        )
    filled = _end(out, filled, held, waiting)
    lengths[len(lengths) - 1] = filled - began
    return filled
