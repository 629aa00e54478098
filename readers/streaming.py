"""A source as samples that a framework's loader asks for, by index or as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Protocol

from readers.draws import begin_sample
from readers.loading.maker import Items
from readers.loading.transform import StandardTransform, Transform
from readers.permutation import derive_seed
from readers.protocols import SupportsReadMany
from readers.sampling import EpochSampling, Indices
from readers.span import transforming

BLOCK = 32
"""Samples that a worker reads at a time, neighbours where the order isn't shuffled."""


class Epoch(Protocol):
    """The number of the epoch, seen in every worker."""

    @property
    def known(self) -> int | None:
        """The epoch; None until `tell` was called."""

    def tell(self, epoch: int, /) -> None:
        """Sets it."""


class SampleTransforms:
    """A source whose samples are transformed when they are read.

    The random numbers of transforms depend on seed, epoch and sample alone, once the epoch is told.
    Until then they come from the framework's own generator, which is another in each worker and
    goes on from epoch to epoch, and from the sample, so that ranks differ which were seeded alike.

    Args:
        source: A dataset, or any sequence.
        transform: Takes a sample as the source gives it; None for `StandardTransform`.
        seed: Of random numbers, 0 to 2**64 - 1.
        epoch: What is known of the epoch.
        draw: Draws a number from the framework's generator.
    """

    def __init__(
        self,
        source: Items,
        transform: Transform | None,
        *,
        seed: int,
        epoch: Epoch,
        draw: Callable[[], int],
    ) -> None:
        self.source = source
        self.transform = transform or StandardTransform()
        self.epoch = epoch
        self._seed = seed
        self._draw = draw

    def __len__(self) -> int:
        return len(self.source)

    def one(self, index: int) -> object:
        """Gives a transformed sample."""
        sample = self.source[index]
        with transforming:
            return self._transformed(sample, index)

    def many(self, indices: Indices) -> list[object]:
        """Gives several, read at once where the source can."""
        source = self.source
        if isinstance(source, SupportsReadMany):
            samples = source.read_many(indices)
            with transforming:
                pairs = zip(samples, indices, strict=True)
                return [self._transformed(sample, int(index)) for sample, index in pairs]
        return [self.one(int(index)) for index in indices]

    def stream(self, sampling: EpochSampling, worker: int, workers: int) -> Iterator[object]:
        """Gives the samples of one of several workers, which share a rank's samples of an epoch.

        Blocks go to the workers in turn, so every sample of the rank goes to exactly one of them,
        whatever the number of workers, samples or shards. While the epoch is unknown the order is
        that of epoch 0.
        """
        batches = sampling.batches(self.epoch.known or 0)
        for block in islice(batches, worker, None, workers):
            yield from self.many(block)

    def _transformed(self, sample: object, index: int) -> object:
        begin_sample(partial(self._seed_of, index))
        try:
            return self.transform(sample)
        finally:
            begin_sample(None)

    def _seed_of(self, index: int) -> int:
        epoch = self.epoch.known
        base = self._draw() if epoch is None else derive_seed(self._seed, epoch)
        return derive_seed(base, index)
