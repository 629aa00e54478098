"""Kernel that decodes a sequential scan (T.81, F.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.recode.bits import code_in, segment_status, value_in, window
from packer.recode.compiling import compiled
from packer.recode.status import BAD_CODE, CUT_SHORT, OUT_OF_RANGE, RUN_PAST_BLOCK

_SIXTEEN_ZEROS = 15
_BLOCK = 64
_LARGEST = 32_767


@compiled("int64(uint8[::1], int64, int64, int32[::1], int32[::1], int64, int16[::1])")
def _decode_block(  # noqa: C901, PLR0911 - one loop, and a status for each way to fail
    bits: NDArray[np.uint8],
    position: int,
    end: int,
    dc_table: NDArray[np.int32],
    ac_table: NDArray[np.int32],
    predicted: int,
    block: NDArray[np.int16],
) -> int:
    """Decodes a block; gives the position after it, or a negative status."""
    word = window(bits, position)
    found = code_in(word, dc_table)
    if found == 0:
        return BAD_CODE if position + 16 <= end else CUT_SHORT
    length = found >> 8
    size = found & 15
    value = predicted
    if size:
        value += value_in(word, length, size)
        if abs(value) > _LARGEST:
            return OUT_OF_RANGE
    position += length + size
    block[0] = value
    k = 1
    while k < _BLOCK:
        word = window(bits, position)
        found = code_in(word, ac_table)
        if found == 0:
            return BAD_CODE if position + 16 <= end else CUT_SHORT
        length = found >> 8
        run = (found >> 4) & 15
        size = found & 15
        position += length + size
        if size:
            k += run
            if k >= _BLOCK:
                return RUN_PAST_BLOCK
            block[k] = value_in(word, length, size)
            k += 1
        elif run == 0:
            break
        elif run == _SIXTEEN_ZEROS:
            k += 16
            if k >= _BLOCK:
                return RUN_PAST_BLOCK
        else:
            return BAD_CODE
    return position if position <= end else CUT_SHORT


@compiled(
    "int64(uint8[::1], int64[::1], int64, int64, int64, int64[:, ::1],"
    " int32[:, ::1], int32[:, ::1], int16[:, ::1])"
)
def decode_sequential(
    bits: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    interval: int,
    mcus: int,
    columns: int,
    units: NDArray[np.int64],
    dc_tables: NDArray[np.int32],
    ac_tables: NDArray[np.int32],
    blocks: NDArray[np.int16],
) -> int:
    """Decodes a scan into coefficients.

    Args:
        bits: The coded pixels, see `unstuff`.
        bounds: Where the restart segments begin and end.
        interval: MCUs of a restart segment.
        mcus: MCUs of the scan.
        columns: MCUs of a row.
        units: The blocks of an MCU, see `packer.recode.coefficients.Coefficients.units`.
        dc_tables: Derived table of each component of the scan.
        ac_tables: The same for the AC coefficients.
        blocks: Takes the coefficients: int16, shape (blocks, 64), zigzag order, zeros before.

    Returns:
        0, or a negative status.
    """
    last = np.zeros(len(dc_tables), np.int64)
    for segment in range(len(bounds) - 1):
        position = bounds[segment] * 8
        end = bounds[segment + 1] * 8
        last[:] = 0
        for mcu in range(segment * interval, min(mcus, (segment + 1) * interval)):
            row = mcu // columns
            column = mcu - row * columns
            for unit in range(len(units)):
                component = units[unit, 0]
                number = units[unit, 1] + row * units[unit, 2] + column * units[unit, 3]
                position = _decode_block(
                    bits, position, end, dc_tables[component], ac_tables[component],
                    last[component], blocks[number],
                )  # fmt: skip
                if position < 0:
                    return position
                last[component] = blocks[number, 0]
        status = segment_status(position, end)
        if status < 0:
            return status
    return 0
