"""Kernels that decode the scans of a progressive JPEG (T.81, annex G).

The arguments are those of `decode_sequential`; a scan of AC coefficients has one component, and so
one block an MCU. `first` and `last` are the coefficients that it tells of, `low` is the bit down to
which it tells them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.recode.bits import code_in, number_in, segment_status, value_in, window
from packer.recode.compiling import compiled
from packer.recode.status import BAD_CODE, CUT_SHORT, OUT_OF_RANGE, RUN_PAST_BLOCK

_SIXTEEN_ZEROS = 15
_LARGEST = 32_767


@compiled(
    "int64(uint8[::1], int64[::1], int64, int64, int64, int64[:, ::1], int32[:, ::1], int64,"
    " int16[:, ::1])"
)
def decode_dc(
    bits: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    interval: int,
    mcus: int,
    columns: int,
    units: NDArray[np.int64],
    tables: NDArray[np.int32],
    low: int,
    blocks: NDArray[np.int16],
) -> int:
    """Decodes a scan that tells DC coefficients for the first time (T.81, G.1.2.1)."""
    predicted = np.zeros(len(tables), np.int64)
    for segment in range(len(bounds) - 1):
        position = bounds[segment] * 8
        end = bounds[segment + 1] * 8
        predicted[:] = 0
        for mcu in range(segment * interval, min(mcus, (segment + 1) * interval)):
            row = mcu // columns
            column = mcu - row * columns
            for unit in range(len(units)):
                component = units[unit, 0]
                word = window(bits, position)
                found = code_in(word, tables[component])
                if found == 0:
                    return BAD_CODE if position + 16 <= end else CUT_SHORT
                length = found >> 8
                size = found & 15
                if size:
                    predicted[component] += value_in(word, length, size)
                position += length + size
                if position > end:
                    return CUT_SHORT
                value = predicted[component] << low
                if abs(value) > _LARGEST:
                    return OUT_OF_RANGE
                number = units[unit, 1] + row * units[unit, 2] + column * units[unit, 3]
                blocks[number, 0] = value
        status = segment_status(position, end)
        if status < 0:
            return status
    return 0


@compiled("int64(uint8[::1], int64[::1], int64, int64, int64, int64[:, ::1], int64, int16[:, ::1])")
def refine_dc(
    bits: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    interval: int,
    mcus: int,
    columns: int,
    units: NDArray[np.int64],
    low: int,
    blocks: NDArray[np.int16],
) -> int:
    """Decodes a scan that adds a bit to DC coefficients (T.81, G.1.2.1)."""
    for segment in range(len(bounds) - 1):
        position = bounds[segment] * 8
        end = bounds[segment + 1] * 8
        for mcu in range(segment * interval, min(mcus, (segment + 1) * interval)):
            row = mcu // columns
            column = mcu - row * columns
            for unit in range(len(units)):
                if position >= end:
                    return CUT_SHORT
                number = units[unit, 1] + row * units[unit, 2] + column * units[unit, 3]
                blocks[number, 0] |= number_in(window(bits, position), 0, 1) << low
                position += 1
        status = segment_status(position, end)
        if status < 0:
            return status
    return 0


@compiled(
    "UniTuple(int64, 2)(uint8[::1], int64, int64, int32[::1], int64, int64, int64, int16[::1])"
)
def _decode_block(
    bits: NDArray[np.uint8],
    position: int,
    end: int,
    table: NDArray[np.int32],
    first: int,
    last: int,
    low: int,
    block: NDArray[np.int16],
) -> tuple[int, int]:
    """Decodes a block; gives the position or a status, and how many empty blocks follow."""
    k = first
    while k <= last:
        word = window(bits, position)
        found = code_in(word, table)
        if found == 0:
            return BAD_CODE if position + 16 <= end else CUT_SHORT, 0
        length = found >> 8
        run = (found >> 4) & 15
        size = found & 15
        position += length + size
        if size == 0 and run != _SIXTEEN_ZEROS:
            empty = (1 << run) - 1
            if run:
                empty += number_in(word, length, run)
            position += run
            return position if position <= end else CUT_SHORT, empty
        k += run
        if k > last:
            return RUN_PAST_BLOCK, 0
        if size:
            value = value_in(word, length, size) << low
            if abs(value) > _LARGEST:
                return OUT_OF_RANGE, 0
            block[k] = value
        elif k == last:
            return RUN_PAST_BLOCK, 0
        k += 1
    return position if position <= end else CUT_SHORT, 0


@compiled(
    "int64(uint8[::1], int64[::1], int64, int64, int64, int64[:, ::1], int32[::1], int64, int64,"
    " int64, int16[:, ::1])"
)
def decode_ac(
    bits: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    interval: int,
    mcus: int,
    columns: int,
    units: NDArray[np.int64],
    table: NDArray[np.int32],
    first: int,
    last: int,
    low: int,
    blocks: NDArray[np.int16],
) -> int:
    """Decodes a scan that tells AC coefficients for the first time (T.81, G.1.2.2)."""
    for segment in range(len(bounds) - 1):
        position = bounds[segment] * 8
        end = bounds[segment + 1] * 8
        empty = 0
        for mcu in range(segment * interval, min(mcus, (segment + 1) * interval)):
            if empty:
                empty -= 1
                continue
            row = mcu // columns
            number = units[0, 1] + row * units[0, 2] + mcu - row * columns
            position, empty = _decode_block(
                bits, position, end, table, first, last, low, blocks[number]
            )
            if position < 0:
                return position
        if empty:
            return RUN_PAST_BLOCK
        status = segment_status(position, end)
        if status < 0:
            return status
    return 0


@compiled("int64(uint8[::1], int64, int64, int64, int64, int64, int16[::1])")
def _refine(
    bits: NDArray[np.uint8],
    position: int,
    zeros: int,
    first: int,
    last: int,
    step: int,
    block: NDArray[np.int16],
) -> int:
    """Adds a bit to the coefficients that aren't 0, up to where `zeros` others lie behind.

    Returns:
        The position after their bits << 8 | the coefficient reached, `last` + 1 if none is left.
    """
    k = first
    while k <= last:
        if block[k]:
            if number_in(window(bits, position), 0, 1):
                block[k] += step if block[k] > 0 else -step
            position += 1
        elif zeros:
            zeros -= 1
        else:
            break
        k += 1
    return position << 8 | k


@compiled(
    "UniTuple(int64, 2)(uint8[::1], int64, int64, int32[::1], int64, int64, int64, int64,"
    " int16[::1])"
)
def _refine_block(
    bits: NDArray[np.uint8],
    position: int,
    end: int,
    table: NDArray[np.int32],
    first: int,
    last: int,
    low: int,
    empty: int,
    block: NDArray[np.int16],
) -> tuple[int, int]:
    """Refines a block, the first of `empty` ones if there are.

    Returns:
        The position or a status, and how many empty blocks follow.
    """
    step = 1 << low
    k = first
    while empty == 0 and k <= last:
        word = window(bits, position)
        found = code_in(word, table)
        if found == 0:
            return BAD_CODE if position + 16 <= end else CUT_SHORT, 0
        length = found >> 8
        zeros = (found >> 4) & 15
        size = found & 15
        if size > 1:
            return BAD_CODE, 0
        position += length + size
        if size == 0 and zeros != _SIXTEEN_ZEROS:
            empty = 1 << zeros
            if zeros:
                empty += number_in(word, length, zeros)
            position += zeros
            break
        reached = _refine(bits, position, zeros, k, last, step, block)
        position = reached >> 8
        k = reached & 0xFF
        if k > last:
            return RUN_PAST_BLOCK, 0
        if size:
            block[k] = step if number_in(word, length, 1) else -step
        k += 1
    if empty:
        position = _refine(bits, position, last, k, last, step, block) >> 8
        empty -= 1
    return position if position <= end else CUT_SHORT, empty


@compiled(
    "int64(uint8[::1], int64[::1], int64, int64, int64, int64[:, ::1], int32[::1], int64, int64,"
    " int64, int16[:, ::1])"
)
def refine_ac(
    bits: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    interval: int,
    mcus: int,
    columns: int,
    units: NDArray[np.int64],
    table: NDArray[np.int32],
    first: int,
    last: int,
    low: int,
    blocks: NDArray[np.int16],
) -> int:
    """Decodes a scan that adds a bit to AC coefficients (T.81, G.1.2.3)."""
    for segment in range(len(bounds) - 1):
        position = bounds[segment] * 8
        end = bounds[segment + 1] * 8
        empty = 0
        for mcu in range(segment * interval, min(mcus, (segment + 1) * interval)):
            row = mcu // columns
            number = units[0, 1] + row * units[0, 2] + mcu - row * columns
            position, empty = _refine_block(
                bits, position, end, table, first, last, low, empty, blocks[number]
            )
            if position < 0:
                return position
        if empty:
            return RUN_PAST_BLOCK
        status = segment_status(position, end)
        if status < 0:
            return status
    return 0
