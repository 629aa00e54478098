"""Our readers as datasets of MegEngine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import megengine.data.dataset
import megengine.distributed
import numpy as np
from megengine.data.dataloader import get_worker_info

from readers.epochs import SharedEpoch
from readers.loading.maker import Items
from readers.loading.transform import Transform
from readers.sampling import EpochSampling
from readers.streaming import BLOCK, SampleTransforms

_MOST = (1 << 63) - 1


class MapDataset(megengine.data.dataset.Dataset):  # type: ignore[misc] # it has no types
    """A source for `megengine.data.DataLoader`, by index.

    Args:
        source: A dataset, or any sequence.
        transform: Takes a sample as the source gives it. None for (pixels, label): `uint8`, shape
            (height, width, 3), and an int, None in a dataset without labels. MegEngine's own
            transforms go into its loader.
        seed: Of the random numbers of transforms that take them from `readers.draws`. They depend
            on it, the epoch and the sample alone once `set_epoch` is called before each epoch;
            until then on NumPy's generator, which MegEngine seeds in each worker.
    """

    def __init__(self, source: Items, transform: Transform | None = None, *, seed: int = 0) -> None:
        super().__init__()
        self._samples = _transforms(source, transform, seed)

    @property
    def dataset(self) -> Items:
        """The source."""
        return self._samples.source

    def set_epoch(self, epoch: int) -> None:
        """Makes random numbers those of that epoch."""
        self._samples.epoch.tell(epoch)

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401 - what the transform gives
        return self._samples.one(int(index))


class StreamDataset(megengine.data.dataset.StreamDataset):  # type: ignore[misc] # it has no types
    """A source for `megengine.data.DataLoader`, as a stream.

    It splits itself over the workers of a loader with `parallel_stream=True`, and over ranks: each
    sample goes to one worker of one rank, and every rank gets the same number of samples (see
    `EpochSampling`). Call `set_epoch` before each epoch, or a shuffled stream repeats its order.

    Args:
        source: A dataset, or any sequence.
        transform: As for `MapDataset`.
        shuffle: Whether each epoch has an order of its own.
        seed: Of the order, and of random numbers as for `MapDataset`.
        rank: Number of this process; None asks `megengine.distributed`, which is 0 without it.
        world_size: How many those are; None likewise.
    """

    def __init__(
        self,
        source: Items,
        transform: Transform | None = None,
        *,
        shuffle: bool = False,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        super().__init__()
        self._samples = _transforms(source, transform, seed)
        self._sampling = EpochSampling(
            samples=len(source),
            batch_size=BLOCK,
            shuffle=shuffle,
            seed=seed,
            rank=megengine.distributed.get_rank() if rank is None else rank,
            world_size=megengine.distributed.get_world_size() if world_size is None else world_size,
        )

    @property
    def dataset(self) -> Items:
        """The source."""
        return self._samples.source

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass go over that epoch."""
        self._samples.epoch.tell(epoch)

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.idx, info.worker)
        return self._samples.stream(self._sampling, worker, workers)


def _transforms(source: Items, transform: Transform | None, seed: int) -> SampleTransforms:
    return SampleTransforms(source, transform, seed=seed, epoch=SharedEpoch(), draw=_draw)


def _draw() -> int:
    return int(np.random.randint(_MOST))  # noqa: NPY002 - the one that MegEngine seeds
