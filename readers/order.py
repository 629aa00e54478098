"""Which order suits the storage that a dataset lies on."""

from __future__ import annotations

from dataclasses import dataclass

from readers.block_shuffle import BlockShuffle
from readers.dataset import Dataset

_SMALL = 32 << 10
"""Bytes of a sample below which a far storage is busier with requests than with bytes: larger ones
come as fast in random order as in a row, so nothing is gained by shuffling less."""
_BLOCK_BYTES = 1 << 20
_BLOCKS = 64


@dataclass(frozen=True, slots=True)
class Order:
    """A way to shuffle, and why."""

    shuffle: BlockShuffle | None
    """None for a full shuffle."""
    reason: str


def suitable_order(dataset: Dataset) -> Order:
    """Chooses how to shuffle a dataset where it lies."""
    storage = dataset.storage()
    mean = sum(shard.bytes for shard in dataset.manifest.shards) // max(1, len(dataset))
    if storage.kind in ("local", "memory"):
        return Order(None, f"full shuffle: {storage.file_system} is near")
    if mean >= _SMALL:
        return Order(
            None,
            f"full shuffle: samples of {mean >> 10} KiB come as fast in random order as in a row",
        )
    block = max(1, _BLOCK_BYTES // max(1, mean))
    return Order(
        BlockShuffle(block=block, buffer=_BLOCKS * block),
        f"block shuffle: samples of {mean} bytes are read in pieces of {block} from "
        f"{storage.file_system}, {_BLOCKS} pieces are shuffled together; shuffle=True shuffles all",
    )
