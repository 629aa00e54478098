"""Kernel that makes the Huffman table of the shortest code (T.81, K.2 and C.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.recode.compiling import compiled

_SYMBOLS = 256
_LONGEST = 16


@compiled("int64(int64[::1], uint8[::1], int64[::1])")
def optimal_table(
    counts: NDArray[np.int64], table: NDArray[np.uint8], codes: NDArray[np.int64]
) -> int:
    """Makes the table for symbols that occur so often.

    Args:
        counts: How often each symbol occurs: int64, shape (256,), at least one not 0.
        table: Takes the number of codes of each length, 1 to 16, then their symbols, at most 256.
        codes: Takes the code of each symbol as length << 16 | code: int64, shape (256,).

    Returns:
        Bytes written to `table`.
    """
    # A symbol more, the rarest of all, takes the code of ones only, which no symbol may have.
    weights = np.zeros(_SYMBOLS + 1, np.int64)
    weights[:_SYMBOLS] = counts
    weights[_SYMBOLS] = 1
    lengths = np.zeros(_SYMBOLS + 1, np.int64)
    chained = np.full(_SYMBOLS + 1, -1, np.int64)
    while True:
        least, second = -1, -1
        for symbol in range(_SYMBOLS + 1):
            weight = weights[symbol]
            if weight == 0:
                continue
            if least < 0 or weight <= weights[least]:
                least, second = symbol, least
            elif second < 0 or weight <= weights[second]:
                second = symbol
        if second < 0:
            break
        weights[least] += weights[second]
        weights[second] = 0
        end = least
        lengths[end] += 1
        while chained[end] >= 0:
            end = chained[end]
            lengths[end] += 1
        chained[end] = second
        end = second
        lengths[end] += 1
        while chained[end] >= 0:
            end = chained[end]
            lengths[end] += 1
    numbers = np.zeros(_SYMBOLS + 2, np.int64)
    for length in lengths:
        numbers[length] += 1
    for length in range(_SYMBOLS, _LONGEST, -1):
        while numbers[length] > 0:
            shorter = length - 2
            while numbers[shorter] == 0:
                shorter -= 1
            numbers[length] -= 2
            numbers[length - 1] += 1
            numbers[shorter + 1] += 2
            numbers[shorter] -= 1
    longest = _LONGEST
    while numbers[longest] == 0:
        longest -= 1
    numbers[longest] -= 1
    for length in range(1, _LONGEST + 1):
        table[length - 1] = numbers[length]
    filled = _LONGEST
    for length in range(1, _SYMBOLS + 1):
        for symbol in range(_SYMBOLS):
            if lengths[symbol] == length:
                table[filled] = symbol
                filled += 1
    codes[:] = 0
    code = 0
    number = _LONGEST
    for length in range(1, _LONGEST + 1):
        for _ in range(numbers[length]):
            codes[table[number]] = length << 16 | code
            code += 1
            number += 1
        code <<= 1
    return filled
