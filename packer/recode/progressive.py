"""Kernels that decode the scans of a progressive JPEG (T.81, annex G).

The arguments are those of `decode_sequential`; a scan of AC coefficients has one component, and
`first` and `last` are the coefficients that it tells of, `low` is the bit at which it ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.recode.bits import code_in, number_in, segment_status, value_in, window
from packer.recode.compiling import compiled
from packer.recode.status import BAD_CODE, CUT_SHORT, OUT_OF_RANGE, RUN_PAST_BLOCK

_ZEROS_16 = 15
_LARGEST = 32_767


@compiled(
    "int64(uint8[::1], int64[::1], int64, int64, int64, int64[:, ::1], int32[:, ::1], boolean,"
    " int64, int16[:, ::1])"
)
def decode_dc(
    bits: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    interval: int,
    mcus: int,
    columns: int,
    layout: NDArray[np.int64],
    tables: NDArray[np.int32],
    refining: bool,  # noqa: FBT001 - a kernel takes positions only
    low: int,
    blocks: NDArray[np.int16],
) -> int:
    """Decodes a scan of DC coefficients, or one that adds a bit to them (T.81, G.1.2.1)."""
    components = len(layout)
    predicted = np.zeros(components, np.int64)
    for segment in range(len(bounds) - 1):
        position = bounds[segment] * 8
        end = bounds[segment + 1] * 8
        predicted[:] = 0
        for mcu in range(segment * interval, min(mcus, (segment + 1) * interval)):
            row = mcu // columns
            column = mcu - row * columns
            for component in range(components):
                wide = layout[component, 0]
                high = layout[component, 1]
                for i in range(high):
                    begin = layout[component, 3] + (row * high + i) * layout[component, 2]
                    for j in range(wide):
                        block = blocks[begin + column * wide + j]
                        word = window(bits, position)
                        if refining:
                            block[0] |= number_in(word, 0, 1) << low
                            position += 1
                        else:
                            found = code_in(word, tables[component])
                            if found == 0:
                                return BAD_CODE if position + 16 <= end else CUT_SHORT
                            length = found >> 8
                            size = found & 15
                            if size:
                                predicted[component] += value_in(word, length, size)
                            position += length + size
                            value = predicted[component] << low
                            if abs(value) > _LARGEST:
                                return OUT_OF_RANGE
                            block[0] = value
                        if position > end:
                            return CUT_SHORT
        status = segment_status(position, end)
        if status < 0:
            return status
    return 0


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
    layout: NDArray[np.int64],
    table: NDArray[np.int32],
    first: int,
    last: int,
    low: int,
    blocks: NDArray[np.int16],
) -> int:
    """Decodes a scan that tells AC coefficients for the first time (T.81, G.1.2.2)."""
    stride = layout[0, 2]
    begin = layout[0, 3]
    for segment in range(len(bounds) - 1):
        position = bounds[segment] * 8
        end = bounds[segment + 1] * 8
        empty = 0
        for mcu in range(segment * interval, min(mcus, (segment + 1) * interval)):
            if empty:
                empty -= 1
                continue
            row = mcu // columns
            block = blocks[begin + row * stride + mcu - row * columns]
            k = first
            while k <= last:
                word = window(bits, position)
                found = code_in(word, table)
                if found == 0:
                    return BAD_CODE if position + 16 <= end else CUT_SHORT
                length = found >> 8
                run = (found >> 4) & 15
                size = found & 15
                if size:
                    k += run
                    if k > last:
                        return RUN_PAST_BLOCK
                    value = value_in(word, length, size) << low
                    if abs(value) > _LARGEST:
                        return OUT_OF_RANGE
                    block[k] = value
                    k += 1
                    position += length + size
                elif run == _ZEROS_16:
                    k += 16
                    if k > last:
                        return RUN_PAST_BLOCK
                    position += length
                else:
                    empty = (1 << run) - 1
                    if run:
                        empty += number_in(word, length, run)
                    position += length + run
                    break
            if position > end:
                return CUT_SHORT
        if empty:
            return RUN_PAST_BLOCK
        status = segment_status(position, end)
        if status < 0:
            return status
    return 0


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
    layout: NDArray[np.int64],
    table: NDArray[np.int32],
    first: int,
    last: int,
    low: int,
    blocks: NDArray[np.int16],
) -> int:
    """Decodes a scan that adds a bit to AC coefficients (T.81, G.1.2.3)."""
    stride = layout[0, 2]
    begin = layout[0, 3]
    step = 1 << low
    for segment in range(len(bounds) - 1):
        position = bounds[segment] * 8
        end = bounds[segment + 1] * 8
        empty = 0
        for mcu in range(segment * interval, min(mcus, (segment + 1) * interval)):
            row = mcu // columns
            block = blocks[begin + row * stride + mcu - row * columns]
            k = first
            while empty == 0 and k <= last:
                word = window(bits, position)
                found = code_in(word, table)
                if found == 0:
                    return BAD_CODE if position + 16 <= end else CUT_SHORT
                length = found >> 8
                zeros = (found >> 4) & 15
                size = found & 15
                position += length
                value = 0
                if size > 1:
                    return BAD_CODE
                if size == 1:
                    value = step if number_in(word, length, 1) else -step
                    position += 1
                elif zeros != _ZEROS_16:
                    empty = 1 << zeros
                    if zeros:
                        empty += number_in(word, length, zeros)
                    position += zeros
                    break
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
                if k > last:
                    return RUN_PAST_BLOCK
                block[k] = value
                k += 1
            if empty:
                while k <= last:
                    if block[k]:
                        if number_in(window(bits, position), 0, 1):
                            block[k] += step if block[k] > 0 else -step
                        position += 1
                    k += 1
                empty -= 1
            if position > end:
                return CUT_SHORT
        if empty:
            return RUN_PAST_BLOCK
        status = segment_status(position, end)
        if status < 0:
            return status
    return 0
