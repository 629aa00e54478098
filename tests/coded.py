"""JPEGs with any sampling factors and any restart interval, made of random coefficients.

No library offers both. The Huffman codes are the plainest there are: 4 bits for a DC category, 8
for an AC symbol, each in the order of its value.
"""

from __future__ import annotations

import random
import struct
from functools import lru_cache

Factors = tuple[tuple[int, int], ...]
"""Of each component, across and down."""

_DC_SYMBOLS = bytes(range(12))
_AC_SYMBOLS = bytes(
    sorted({0x00, 0xF0, *(run << 4 | size for run in range(16) for size in (1, 2, 3, 4, 5))})
)
_QUANTISER = bytes([6] + [9] * 63)


@lru_cache(maxsize=512)
def coded_jpeg(
    seed: int, height: int, width: int, factors: Factors, interval: int, *, adobe: int | None = None
) -> bytes:
    """Makes a baseline JPEG of one scan.

    Args:
        seed: Of its coefficients.
        height: In pixels.
        width: Likewise.
        factors: Sampling factors.
        interval: MCUs between restart markers; 0 for none.
        adobe: Colour transform that an Adobe segment states (0 is RGB); None for no such segment.
    """
    count = len(factors)
    parts = [b"\xff\xd8"]
    if adobe is not None:
        parts.append(_segment(0xEE, b"Adobe" + struct.pack(">HHHB", 100, 0, 0, adobe)))
    parts.append(_segment(0xDB, b"\0" + _QUANTISER))
    components = b"".join(
        bytes((number + 1, across << 4 | down, 0)) for number, (across, down) in enumerate(factors)
    )
    parts.append(_segment(0xC0, struct.pack(">BHHB", 8, height, width, count) + components))
    parts.append(_segment(0xC4, _table(0x00, 4, _DC_SYMBOLS)))
    parts.append(_segment(0xC4, _table(0x10, 8, _AC_SYMBOLS)))
    if interval:
        parts.append(_segment(0xDD, struct.pack(">H", interval)))
    selectors = b"".join(bytes((number + 1, 0)) for number in range(count))
    parts.append(_segment(0xDA, bytes((count,)) + selectors + b"\0\x3f\0"))
    parts.append(_scan(random.Random(seed), height, width, factors, interval))  # noqa: S311 - no secret
    return b"".join((*parts, b"\xff\xd9"))


def _segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def _table(number: int, bits: int, symbols: bytes) -> bytes:
    counts = bytes(len(symbols) if length == bits else 0 for length in range(1, 17))
    return bytes((number,)) + counts + symbols


def _scan(draw: random.Random, height: int, width: int, factors: Factors, interval: int) -> bytes:
    wide = max(across for across, _ in factors) if len(factors) > 1 else 1
    high = max(down for _, down in factors) if len(factors) > 1 else 1
    mcus = -(-width // (8 * wide)) * -(-height // (8 * high))
    blocks = [a * d if len(factors) > 1 else 1 for a, d in factors]
    segments = []
    step = interval or mcus
    for first in range(0, mcus, step):
        before = [0] * len(factors)
        bits: list[str] = []
        for _ in range(first, min(first + step, mcus)):
            for component, many in enumerate(blocks):
                for _ in range(many):
                    level = max(-150, min(150, before[component] + draw.randint(-60, 60)))
                    _add_block(bits, level - before[component], draw)
                    before[component] = level
        text = "".join(bits)
        text += "1" * (-len(text) % 8)
        data = int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\0")
        segments.append(data)
    joined = [segments[0]]
    for number, data in enumerate(segments[1:]):
        joined.append(bytes((0xFF, 0xD0 + number % 8)) + data)
    return b"".join(joined)


def _add_block(bits: list[str], difference: int, draw: random.Random) -> None:
    size = abs(difference).bit_length()
    bits.append(format(size, "04b") + _extra(difference, size))
    position = 1
    for _ in range(draw.randint(0, 4)):
        run = draw.randint(0, 4)
        position += run + 1
        if position > 63:
            break
        value = draw.choice((-25, -7, -2, -1, 1, 3, 9, 30))
        size = abs(value).bit_length()
        bits.append(format(_AC_SYMBOLS.index(run << 4 | size), "08b") + _extra(value, size))
    bits.append(format(_AC_SYMBOLS.index(0), "08b"))


def _extra(value: int, size: int) -> str:
    if not size:
        return ""
    return format(value if value > 0 else value + (1 << size) - 1, f"0{size}b")
