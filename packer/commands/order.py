"""What `packer inspect --order` tells: which shuffle suits, and how well each mixes."""

from __future__ import annotations

from dataclasses import asdict

import click
import numpy as np

from readers.block_shuffle import BlockShuffle
from readers.dataset import Dataset
from readers.order import suitable_order
from readers.permutation import permutation
from readers.sample import JsonValue
from readers.shuffle_quality import shuffle_quality

_SEED = 0


def order_facts(
    dataset: Dataset, block: int | None, buffer: int | None, batch_size: int
) -> dict[str, JsonValue]:
    """Measures the dataset's own order, a full shuffle, and the block shuffle that is asked for.

    Raises:
        click.UsageError: Only one of block and buffer is given.
    """
    if (block is None) != (buffer is None):
        raise click.UsageError("--block and --buffer go together")
    suitable = suitable_order(dataset)
    blocks = suitable.shuffle
    if block is not None and buffer is not None:
        blocks = BlockShuffle(block=block, buffer=buffer)
    samples = len(dataset)
    orders = {
        "not shuffled": np.arange(samples, dtype=np.int64),
        "full shuffle": permutation(samples, _SEED),
    }
    if blocks is not None:
        name = f"block {blocks.block}, buffer {blocks.buffer}"
        orders[name] = blocks.order(samples, _SEED)
    labels = dataset.labels if dataset.classes else None
    return {
        "suitable": suitable.reason,
        **{
            name: {
                figure: value
                for figure, value in asdict(shuffle_quality(order, labels, batch_size)).items()
                if value is not None
            }
            for name, order in orders.items()
        },
    }
