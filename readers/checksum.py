"""Checksums: XXH3-128 as specified at https://xxhash.com, in canonical (big-endian) bytes.

A record's checksum is the XXH3-128 of its bytes. A file's checksum is the XXH3-128 of the
XXH3-128 digests of its consecutive blocks of `BLOCK_SIZE` bytes, the last one as long as it is:
so blocks can be digested in any order and in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import xxhash

BLOCK_SIZE = 1 << 22
"""Bytes of a block of a file's checksum."""

Buffer: TypeAlias = bytes | bytearray | memoryview


def digest(data: Buffer) -> bytes:
    """Checksums one record or block; 16 bytes."""
    return xxhash.xxh3_128_digest(data)


def digest_parts(parts: Iterable[Buffer]) -> bytes:
    """Checksums consecutive pieces of one block; 16 bytes."""
    state = xxhash.xxh3_128()
    for part in parts:
        state.update(part)
    return state.digest()


def file_checksum(block_digests: Iterable[bytes]) -> str:
    """Joins the digests of a file's blocks, in order, to the file's checksum in hex."""
    return digest_parts(block_digests).hex()
