"""Kernel that decodes a sequential scan (T.81, F.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.recode.bits import code_in, segment_status, value_in, window
from packer.recode.compiling import compiled
from packer.recode.status import BAD_CODE, CUT_SHORT, OUT_OF_RANGE, RUN_PAST_BLOCK

_ZEROS_16 = 15
_LARGEST = 32_767


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
    layout: NDArray[np.int64],
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
        layout: A row for each component of the scan: blocks of an MCU horizontally and vertically,
            blocks of a row of `blocks`, its first block there.
        dc_tables: Derived table of each component of the scan.
        ac_tables: The same for the AC coefficients.
        blocks: Takes the coefficients: int16, shape (blocks, 64), zigzag order, zeros before.

    Returns:
        0, or a negative status.
    """
    components = len(layout)
    last = np.zeros(components, np.int64)
    for segment in range(len(bounds) - 1):
        position = bounds[segment] * 8
        end = bounds[segment + 1] * 8
        last[:] = 0
        for mcu in range(segment * interval, min(mcus, (segment + 1) * interval)):
            row = mcu // columns
            column = mcu - row * columns
            for component in range(components):
                wide = layout[component, 0]
                high = layout[component, 1]
                dc_table = dc_tables[component]
                ac_table = ac_tables[component]
                for i in range(high):
                    first = layout[component, 3] + (row * high + i) * layout[component, 2]
                    for j in range(wide):
                        block = blocks[first + column * wide + j]
                        word = window(bits, position)
                        found = code_in(word, dc_table)
                        if found == 0:
                            return BAD_CODE if position + 16 <= end else CUT_SHORT
                        length = found >> 8
                        size = found & 15
                        if size:
                            last[component] += value_in(word, length, size)
                            if abs(last[component]) > _LARGEST:
                                return OUT_OF_RANGE
                        position += length + size
                        block[0] = last[component]
                        k = 1
                        while k < 64:
                            word = window(bits, position)
                            found = code_in(word, ac_table)
                            if found == 0:
                                return BAD_CODE if position + 16 <= end else CUT_SHORT
                            length = found >> 8
                            run = (found >> 4) & 15
                            size = found & 15
                            position += length + size
                            if size == 0:
                                if run == 0:
                                    break
                                if run != _ZEROS_16:
                                    return BAD_CODE
                                k += 16
                                if k > 63:
                                    return RUN_PAST_BLOCK
                                continue
                            k += run
                            if k > 63:
                                return RUN_PAST_BLOCK
                            block[k] = value_in(word, length, size)
                            k += 1
                        if position > end:
                            return CUT_SHORT
        status = segment_status(position, end)
        if status < 0:
            return status
    return 0
