"""Which samples make which batch: a pure function of seed, epoch, rank and position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from readers.block_shuffle import BlockShuffle
from readers.errors import OptionError
from readers.permutation import derive_seed, permutation

_BLOCKS = 2
"""Stands for a block shuffle, where 1 stands for a full one."""

Indices: TypeAlias = Sequence[int] | NDArray[np.int64]


class Sampling(Protocol):
    """How the epochs of a loader are cut into batches."""

    @property
    def stride(self) -> int:
        """By how much the position in the epoch grows with a batch."""

    @property
    def identity(self) -> dict[str, int]:
        """What must be equal for a position to mean the same samples."""

    @property
    def together(self) -> int:
        """Batches that are best read at once."""

    def count(self, position: int = 0) -> int | None:
        """Gives the number of batches from a position to the end; None if it isn't known."""

    def batches(self, epoch: int, position: int = 0) -> Iterator[Indices]:
        """Gives the batches of an epoch from a position to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochSampling:
    """Each sample once an epoch, in order or shuffled, split evenly over ranks.

    The epoch has one order, which all ranks share: the dataset's, or one of a seed that
    `derive_seed` makes for the epoch: `permutation`, or that of a `BlockShuffle`. Rank r of W takes
    places r, r + W, r + 2 W …, so after any number of steps all ranks together have taken the start
    of that order, and training may go on there with another number of ranks or another batch size.

    Every rank gets the same number of samples and batches. Where the samples don't divide by the
    ranks, the order is filled up with samples from its own start, at most W - 1 of them; with
    `drop_last` its end is left out instead, and so is a last batch that isn't full.
    """

    samples: int
    batch_size: int
    shuffle: bool | BlockShuffle = False
    seed: int = 0
    rank: int = 0
    world_size: int = 1
    drop_last: bool = False

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise OptionError(f"batch_size is {self.batch_size}: it must be at least 1")
        if not 0 <= self.rank < self.world_size:
            raise OptionError(
                f"rank {self.rank} of world_size {self.world_size}: ranks count from 0"
            )
        if not 0 <= self.seed < 1 << 64:
            raise OptionError(f"seed {self.seed} must be at least 0 and below 2**64")

    @property
    def stride(self) -> int:
        """By how much the position grows with a batch: the samples that all ranks take."""
        return self.batch_size * self.world_size

    @property
    def identity(self) -> dict[str, int]:
        """What must be equal for a position to mean the same samples."""
        blocks = self.shuffle if isinstance(self.shuffle, BlockShuffle) else None
        return {
            "samples": self.samples,
            "shuffle": int(bool(self.shuffle)) if blocks is None else _BLOCKS,
            "seed": self.seed,
            **({} if blocks is None else asdict(blocks)),
        }

    @property
    def together(self) -> int:
        """Batches whose samples lie in the same blocks."""
        if not isinstance(self.shuffle, BlockShuffle):
            return 1
        return max(1, self.shuffle.buffer // self.stride)

    def count(self, position: int = 0) -> int:
        """Gives the number of batches of a rank from a position in the order to its end."""
        mine = self._count_samples(position)
        return mine // self.batch_size if self.drop_last else -(-mine // self.batch_size)

    def batches(self, epoch: int, position: int = 0) -> Iterator[NDArray[np.int64]]:
        """Gives this rank's batches of an epoch.

        Args:
            epoch: From 0.
            position: Place in the epoch's order at which to begin, the same on every rank.

        Yields:
            Indices of samples, int64, shape (batch_size,), the last one shorter.
        """
        if self.samples == 0:
            return
        order = self._order(derive_seed(self.seed, epoch))
        mine = self._count_samples(position)
        for start in range(0, self.count(position) * self.batch_size, self.batch_size):
            steps = np.arange(start, min(start + self.batch_size, mine), dtype=np.int64)
            places = (position + self.rank + steps * self.world_size) % self.samples
            yield places if order is None else order[places]

    def _order(self, seed: int) -> NDArray[np.int64] | None:
        if isinstance(self.shuffle, BlockShuffle):
            return self.shuffle.order(self.samples, seed)
        return permutation(self.samples, seed) if self.shuffle else None

    def _count_samples(self, position: int) -> int:
        left = max(0, self.samples - position)
        return left // self.world_size if self.drop_last else -(-left // self.world_size)


@runtime_checkable
class SupportsSetEpoch(Protocol):
    """Batches that want to know the epoch."""

    def set_epoch(self, epoch: int, /) -> None:
        """Takes the number of the epoch that is about to begin."""


@runtime_checkable
class _SupportsLen(Protocol):
    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class GivenBatches:
    """Batches that the user gives, such as a batch sampler of torch; iterated once an epoch."""

    given: Iterable[Indices]

    def __post_init__(self) -> None:
        if isinstance(self.given, Iterator):
            raise OptionError(
                f"{self.given!r} can be iterated once: give batches that can be again"
            )

    @property
    def stride(self) -> int:
        """The position counts batches."""
        return 1

    @property
    def identity(self) -> dict[str, int]:
        """Nothing is known of the batches."""
        return {}

    @property
    def together(self) -> int:
        """Nothing is known of the batches."""
        return 1

    def count(self, position: int = 0) -> int | None:
        """Gives the number of batches from a position to the end; None if it isn't known."""
        return max(0, len(self.given) - position) if isinstance(self.given, _SupportsLen) else None

    def batches(self, epoch: int, position: int = 0) -> Iterator[Indices]:
        """Gives the batches after the first `position`, telling the epoch to who wants it."""
        if isinstance(self.given, SupportsSetEpoch):
            self.given.set_epoch(epoch)
        return islice(iter(self.given), position, None)
