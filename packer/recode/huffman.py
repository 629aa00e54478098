"""Kernels that make the Huffman table of the shortest code (T.81, K.2 and C.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from packer.recode.compiling import compiled

_SYMBOLS = 256
_LONGEST = 16


@compiled("UniTuple(int64, 2)(int64[::1])")
def _two_rarest(weights: NDArray[np.int64]) -> tuple[int, int]:
    """Finds the two smallest weights that aren't 0, the later ones of equals; -1 for none."""
    least, second = -1, -1
    for symbol in range(len(weights)):
        weight = weights[symbol]
        if weight == 0:
            continue
        if least < 0 or weight <= weights[least]:
            least, second = symbol, least
        elif second < 0 or weight <= weights[second]:
            second = symbol
    return least, second


@compiled("int64(int64[::1], int64[::1], int64)")
def _lengthen(lengths: NDArray[np.int64], chained: NDArray[np.int64], symbol: int) -> int:
    """Makes the codes of a symbol and those chained to it a bit longer; gives the last of them."""
    lengths[symbol] += 1
    while chained[symbol] >= 0:
        symbol = chained[symbol]
        lengths[symbol] += 1
    return symbol


@compiled("void(int64[::1])")
def _shorten(numbers: NDArray[np.int64]) -> None:
    """Changes how many codes each length has until none is longer than 16 (T.81, figure K.3)."""
    for length in range(_SYMBOLS, _LONGEST, -1):
        while numbers[length] > 0:
            shorter = length - 2
            while numbers[shorter] == 0:
                shorter -= 1
            numbers[length] -= 2
            numbers[length - 1] += 1
            numbers[shorter + 1] += 2
            numbers[shorter] -= 1


@compiled("int64(int64[::1], uint8[::1], int64[::1])")
def optimal_table(
    counts: NDArray[np.int64], table: NDArray[np.uint8], codes: NDArray[np.int64]
) -> int:
    """Makes the table for symbols that occur so often.

    Args:
        counts: How often each symbol occurs: int64, shape (256,), at least one not 0.
        table: Takes the number of codes of each length, 1 to 16, then their symbols, at most 256.
        codes: Takes the code of each symbol as length << 32 | code: int64, shape (256,).

    Returns:
        Bytes written to `table`.
    """
    # A symbol more, the rarest of all, takes the code of ones only, which no symbol may have.
    weights = np.ones(_SYMBOLS + 1, np.int64)
    weights[:_SYMBOLS] = counts
    lengths = np.zeros(_SYMBOLS + 1, np.int64)
    chained = np.full(_SYMBOLS + 1, -1, np.int64)
    least, second = _two_rarest(weights)
    while second >= 0:
        weights[least] += weights[second]
        weights[second] = 0
        chained[_lengthen(lengths, chained, least)] = second
        _lengthen(lengths, chained, second)
        least, second = _two_rarest(weights)
    numbers = np.zeros(_SYMBOLS + 2, np.int64)
    for symbol in range(_SYMBOLS + 1):
        numbers[lengths[symbol]] += 1
    _shorten(numbers)
    longest = _LONGEST
    while numbers[longest] == 0:
        longest -= 1
    numbers[longest] -= 1
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
        table[length - 1] = numbers[length]
        for _ in range(numbers[length]):
            codes[table[number]] = length << 32 | code
            code += 1
            number += 1
        code <<= 1
    return filled
