"""Kernels that code coefficients as one baseline scan with restart markers (T.81, F.1.2).

First the AC coefficients of each block become runs, in the same memory, and the symbols of the code
are counted on the way; then the DC coefficients are counted, which depend on where restarts are;
then all is coded.

Blocks that only fill up the last MCU of a row or a column show nothing; they are coded as cheaply
as can be, like the block before and without AC coefficients, whatever the source had there. The
first component uses Huffman tables number 0, the others number 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.recode.compiling import compiled
from packer.recode.status import OUT_OF_RANGE

_BLOCK = 64
_BITS_DC, _BITS_AC = 11, 10
"""Bits of the largest values that 8-bit samples give (T.81, F.1.2.1.2 and F.1.2.2.1)."""
_LARGEST_DC, _LARGEST_AC = (1 << _BITS_DC) - 1, (1 << _BITS_AC) - 1
_SIZES = np.array([value.bit_length() for value in range(1 << _BITS_DC)], np.uint8)
"""Bits of a magnitude."""

_SIXTEEN_ZEROS, _END_OF_BLOCK = 0xF0, 0x00
_LONGEST_RUN = 15
_NO_VALUES = np.uint64(0)
_BYTE, _WORD = np.uint64(0xFF), np.uint64(0xFFFF_FFFF)
_MARKED = 0xFF
_SYMBOL = 0xFF
_JOINED = 256
"""Runs below which, and down to whose negative, codes are worked out beforehand."""


@compiled("int64(int16[::1], uint64[::1], int64[::1])")
def _block_to_runs(
    block: NDArray[np.int16], words: NDArray[np.uint64], counts: NDArray[np.int64]
) -> int:
    """Rewrites a block's AC coefficients as runs and counts their symbols; gives 0 or a status."""
    # Whether a coefficient is 0 can't be foreseen, so nothing branches on it.
    filled = 1
    before = 0
    largest = 0
    for word in range(_BLOCK // 4):
        if words[word] == _NO_VALUES:
            continue
        for k in range(max(1, 4 * word), 4 * word + 4):
            value = np.int64(block[k])
            is_value = np.int64(value != 0)
            magnitude = abs(value)
            largest = max(largest, magnitude)
            run = k - before - 1
            while run > _LONGEST_RUN and is_value:
                counts[_SIXTEEN_ZEROS] += 1
                block[filled] = _LONGEST_RUN
                filled += 1
                run -= 16
            size = np.int64(_SIZES[min(magnitude, _LARGEST_AC)])
            counts[(run << 4 | size) & _SYMBOL] += is_value
            block[filled] = value << 4 | run
            filled += is_value
            before = k if is_value else before
    if largest > _LARGEST_AC:
        return OUT_OF_RANGE
    if before < _BLOCK - 1:
        counts[_END_OF_BLOCK] += 1
        block[filled] = 0
    return 0


@compiled("int64(int16[:, ::1], uint64[:, ::1], int64[:, ::1], int64, int64[:, ::1])")
def ac_to_runs(
    blocks: NDArray[np.int16],
    words: NDArray[np.uint64],
    units: NDArray[np.int64],
    mcus: int,
    counts: NDArray[np.int64],
) -> int:
    """Rewrites AC coefficients as runs and counts their symbols.

    Args:
        blocks: The coefficients, see `packer.recode.coefficients.Coefficients`. After the DC
            coefficient come value << 4 | zeros before it, where 15 without a value stands for 16
            zeros, and 0 at the end of a block that doesn't end in a value.
        words: The same memory, four coefficients a number: uint64, shape (blocks, 16).
        units: The blocks of an MCU, see `Coefficients.units`.
        mcus: MCUs of the picture.
        counts: Takes how often each symbol of the two tables occurs: int64, shape (2, 256).

    Returns:
        0, or a negative status.
    """
    for unit in range(len(units)):
        component, first, down, right, rows, columns = units[unit]
        count = counts[min(component, 1)]
        count[_END_OF_BLOCK] += mcus - rows * columns
        for row in range(rows):
            for column in range(columns):
                number = first + row * down + column * right
                status = _block_to_runs(blocks[number], words[number], count)
                if status < 0:
                    return status
    return 0


@compiled("int64(int16[:, ::1], int64[:, ::1], int64, int64, int64, int64[:, ::1])")
def count_dc(
    blocks: NDArray[np.int16],
    units: NDArray[np.int64],
    mcus: int,
    columns: int,
    interval: int,
    counts: NDArray[np.int64],
) -> int:
    """Counts the symbols of the DC coefficients.

    Args:
        blocks: As for `ac_to_runs`, before or after it.
        units: As for `ac_to_runs`.
        mcus: As for `ac_to_runs`.
        columns: MCUs of a row.
        interval: MCUs of a restart segment.
        counts: As for `ac_to_runs`.

    Returns:
        0, or a negative status.
    """
    last = np.zeros(len(units), np.int64)
    for mcu in range(mcus):
        row = mcu // columns
        column = mcu - row * columns
        if mcu % interval == 0:
            last[:] = 0
        for unit in range(len(units)):
            component = units[unit, 0]
            table = min(component, 1)
            if row >= units[unit, 4] or column >= units[unit, 5]:
                counts[table, 0] += 1
                continue
            number = units[unit, 1] + row * units[unit, 2] + column * units[unit, 3]
            value = np.int64(blocks[number, 0])
            magnitude = abs(value - last[component])
            if magnitude > _LARGEST_DC:
                return OUT_OF_RANGE
            last[component] = value
            counts[table, _SIZES[magnitude]] += 1
    return 0


@compiled("Tuple((int64, uint64, int64))(uint8[::1], int64, uint64, int64, int64)")
def _put(
    out: NDArray[np.uint8], filled: int, held: np.uint64, waiting: int, code: int
) -> tuple[int, np.uint64, int]:
    """Adds length << 32 | bits, at most 32, to those that wait, at most 31; writes 32 if it can."""
    length = code >> 32
    held = held << np.uint64(length) | np.uint64(code & 0xFFFF_FFFF)
    waiting += length
    if waiting < 32:  # noqa: PLR2004 - bits of a word
        return filled, held, waiting
    waiting -= 32
    word = np.int64((held >> np.uint64(waiting)) & _WORD)
    if word & ~(word + 0x01010101) & 0x80808080:  # perhaps a byte FF
        for shift in (24, 16, 8, 0):
            byte = (word >> shift) & 0xFF
            out[filled] = byte
            filled += 1
            if byte == _MARKED:
                out[filled] = 0
                filled += 1
    else:
        at = np.uint64(filled)  # unsigned, or each index would be asked whether it is negative
        out[at] = word >> 24
        out[at + np.uint64(1)] = (word >> 16) & 0xFF
        out[at + np.uint64(2)] = (word >> 8) & 0xFF
        out[at + np.uint64(3)] = word & 0xFF
        filled += 4
    return filled, held, waiting


@compiled("int64(int64, int64)")
def _with_value(code: int, value: int) -> int:
    """Joins a code and the bits of a value (T.81, F.1.2.1), both as length << 32 | bits."""
    size = np.int64(_SIZES[abs(value)])
    if value < 0:
        value += (1 << size) - 1
    joined: int = ((code >> 32) + size) << 32 | (code & 0xFFFF) << size | value
    return joined


@compiled("void(int64[::1], int64[::1])")
def _join(codes: NDArray[np.int64], joined: NDArray[np.int64]) -> None:
    """Works out the code of each run with a small value, the end of a block among them."""
    for run in range(-_JOINED, _JOINED):
        value = run >> 4
        symbol = (run & 15) << 4 | np.int64(_SIZES[abs(value)])
        joined[run + _JOINED] = _with_value(codes[symbol], value)


@compiled(
    "Tuple((int64, uint64, int64))(uint8[::1], int64, uint64, int64, int64[::1], int64[::1],"
    " int16[::1])"
)
def _put_runs(
    out: NDArray[np.uint8],
    filled: int,
    held: np.uint64,
    waiting: int,
    codes: NDArray[np.int64],
    joined: NDArray[np.int64],
    block: NDArray[np.int16],
) -> tuple[int, np.uint64, int]:
    """Adds the AC coefficients of a block."""
    reached = 0
    k = 1
    while reached < _BLOCK - 1:
        run = np.int64(block[k])
        k += 1
        reached += (run & 15) + 1 if run else _BLOCK
        if -_JOINED <= run < _JOINED:
            code = joined[run + _JOINED]
        else:
            value = run >> 4
            code = _with_value(codes[(run & 15) << 4 | np.int64(_SIZES[abs(value)])], value)
        filled, held, waiting = _put(out, filled, held, waiting, code)
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
        if byte == _MARKED:
            out[filled] = 0
            filled += 1
    return filled


@compiled(
    "int64(int16[:, ::1], int64[:, ::1], int64, int64, int64, int64[:, ::1], int64[:, ::1],"
    " uint8[::1], int64[::1])"
)
def encode(
    blocks: NDArray[np.int16],
    units: NDArray[np.int64],
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
        blocks: As `ac_to_runs` left them.
        units: As for `count_dc`, like the next three.
        mcus: See there.
        columns: See there.
        interval: See there.
        dc_codes: Code of each symbol of the two tables as length << 32 | code: int64, shape
            (2, 256).
        ac_codes: The same for the AC coefficients.
        out: Takes the coded pixels: twice the bytes of their bits (each may need stuffing), and 8
            for each segment.
        lengths: Takes the bytes of each restart segment, with its marker: int64, shape (segments,).

    Returns:
        Bytes written to `out`.
    """
    joined = np.empty((len(ac_codes), 2 * _JOINED), np.int64)
    for table in range(len(ac_codes)):
        _join(ac_codes[table], joined[table])
    last = np.zeros(len(units), np.int64)
    filled = 0
    held = np.uint64(0)
    waiting = 0
    for segment in range(len(lengths)):
        began = filled
        last[:] = 0
        for mcu in range(segment * interval, min(mcus, (segment + 1) * interval)):
            row = mcu // columns
            column = mcu - row * columns
            for unit in range(len(units)):
                component = units[unit, 0]
                table = min(component, 1)
                if row >= units[unit, 4] or column >= units[unit, 5]:
                    for code in (dc_codes[table, 0], ac_codes[table, _END_OF_BLOCK]):
                        filled, held, waiting = _put(out, filled, held, waiting, code)
                    continue
                number = units[unit, 1] + row * units[unit, 2] + column * units[unit, 3]
                value = np.int64(blocks[number, 0]) - last[component]
                last[component] += value
                code = _with_value(dc_codes[table, _SIZES[abs(value)]], value)
                filled, held, waiting = _put(out, filled, held, waiting, code)
                filled, held, waiting = _put_runs(
                    out, filled, held, waiting, ac_codes[table], joined[table], blocks[number]
                )
        filled = _end(out, filled, held, waiting)
        held = np.uint64(0)
        waiting = 0
        if segment < len(lengths) - 1:
            out[filled] = 0xFF
            out[filled + 1] = 0xD0 + segment % 8
            filled += 2
        lengths[segment] = filled - began
    return filled
