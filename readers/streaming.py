"""A source as a stream of samples, split over the workers of a framework's loader."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from readers.loading.maker import Items
from readers.loading.transform import StandardTransform, Transform
from readers.protocols import SupportsReadMany
from readers.sampling import EpochSampling, Indices
from readers.span import transforming

BLOCK = 32
"""Samples that a worker reads at a time, neighbours where the order isn't shuffled."""


class SampleTransforms:
    """A source whose samples are transformed when they are read.

    Args:
        source: A dataset, or any sequence.
        transform: Takes a sample as the source gives it; None for `StandardTransform`.
    """

    def __init__(self, source: Items, transform: Transform | None) -> None:
        self.source = source
        self.transform = transform or StandardTransform()

    def __len__(self) -> int:
        return len(self.source)

    def one(self, index: int) -> object:
        """Gives a transformed sample."""
        sample = self.source[index]
        with transforming:
            return self.transform(sample)

    def many(self, indices: Indices) -> list[object]:
        """Gives several, read at once where the source can."""
        source = self.source
        if isinstance(source, SupportsReadMany):
            samples = source.read_many(indices)
            with transforming:
                return [self.transform(sample) for sample in samples]
        return [self.one(int(index)) for index in indices]

    def stream(
        self, sampling: EpochSampling, epoch: int, worker: int, workers: int
    ) -> Iterator[object]:
        """Gives the samples of one of several workers, which share a rank's samples of an epoch.

        Blocks go to the workers in turn, so every sample of the rank goes to exactly one of them,
        whatever the number of workers, samples or shards.
        """
        for block in islice(sampling.batches(epoch), worker, None, workers):
            yield from self.many(block)
