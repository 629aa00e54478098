"""An order that is nearly random, and reads storage in long pieces.

Blocks of samples that lie side by side come in random order; what they bring goes through a buffer
that is shuffled whole each time it is full. `readers.shuffle_quality` says how random that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readers.errors import OptionError
from readers.permutation import derive_seed, permutation


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockShuffle:
    """How far samples are shuffled."""

    block: int
    """Samples that stay together on the way into the buffer: what is read at once."""
    buffer: int
    """Samples that are shuffled together. The loader holds their bytes, as they are stored, twice:
    those that batches are made of, and those that are read meanwhile."""

    def __post_init__(self) -> None:
        if not 1 <= self.block <= self.buffer:
            raise OptionError(
                f"block is {self.block} and buffer {self.buffer}: a block has at least one sample, "
                "and the buffer holds at least one block"
            )

    def order(self, samples: int, seed: int) -> NDArray[np.int64]:
        """Gives the order of an epoch.

        Args:
            samples: How many there are.
            seed: 0 to 2**64 - 1.

        Returns:
            int64, shape (samples,).
        """
        blocks = permutation(-(-samples // self.block), derive_seed(seed, 0))
        rows = (blocks[:, None] * self.block + np.arange(self.block)).ravel()
        rows = rows[rows < samples]  # the last block may be short, wherever it has come
        chance = np.empty(samples, np.int64)
        chance[permutation(samples, derive_seed(seed, 1))] = np.arange(samples)
        fillings = np.arange(samples) // self.buffer
        return rows[np.lexsort((chance, fillings))]
