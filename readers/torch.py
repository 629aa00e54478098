"""Our readers as datasets of PyTorch, and tensors out of our loader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed
import torch.utils.data
from numpy.typing import NDArray

from readers.loading.maker import Items
from readers.loading.output import pins
from readers.loading.transform import Transform
from readers.sampling import EpochSampling
from readers.streaming import BLOCK, SampleTransforms

_KINDS = "biufc"
_UNKNOWN = -1
_MOST = (1 << 63) - 1


class MapDataset(torch.utils.data.Dataset[Any]):
    """A source for `torch.utils.data.DataLoader`, by index; a batch is read at once.

    ::

        DataLoader(MapDataset(open_dataset(path), augment), batch_size=256, num_workers=8)

    Args:
        source: A dataset, or any sequence; it is pickled into spawned workers.
        transform: Takes a sample as the source gives it. None for (pixels, label): `uint8`, shape
            (height, width, 3), and an int, None in a dataset without labels.
            `readers.loading.transform.ImageTransform` makes one of a function of pixels.
        seed: Of the random numbers of transforms that take them from `readers.draws`. They depend
            on it, the epoch and the sample alone once `set_epoch` is called before each epoch;
            until then on PyTorch's generator, which `torch.manual_seed` seeds and workers continue.
    """

    def __init__(self, source: Items, transform: Transform | None = None, *, seed: int = 0) -> None:
        self._samples = _transforms(source, transform, seed)

    @property
    def dataset(self) -> Items:
        """The source."""
        return self._samples.source

    def set_epoch(self, epoch: int) -> None:
        """Makes random numbers those of that epoch; workers that persist hear of it too."""
        self._samples.epoch.tell(epoch)

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401 - what the transform gives
        return self._samples.one(index)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Gives the samples of a batch."""
        return self._samples.many(indices)


class StreamDataset(torch.utils.data.IterableDataset[Any]):
    """A source for `torch.utils.data.DataLoader`, as a stream.

    It splits itself over the workers of the loader and over ranks: each sample goes to one worker
    of one rank, and every rank gets the same number of samples (see `EpochSampling`). Call
    `set_epoch` before each epoch, or a shuffled stream repeats its order; workers that persist hear
    of it too.

    Args:
        source: A dataset, or any sequence.
        transform: As for `MapDataset`.
        shuffle: Whether each epoch has an order of its own.
        seed: Of the order, and of random numbers as for `MapDataset`.
        rank: Number of this process; None asks `torch.distributed`, which is 0 without it.
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
        together = torch.distributed.is_available() and torch.distributed.is_initialized()
        if rank is None:
            rank = torch.distributed.get_rank() if together else 0
        if world_size is None:
            world_size = torch.distributed.get_world_size() if together else 1
        self._samples = _transforms(source, transform, seed)
        self._sampling = EpochSampling(
            samples=len(source),
            batch_size=BLOCK,
            shuffle=shuffle,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )

    @property
    def dataset(self) -> Items:
        """The source."""
        return self._samples.source

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass go over that epoch."""
        self._samples.epoch.tell(epoch)

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        return self._samples.stream(self._sampling, worker, workers)


class _TensorEpoch:
    """The epoch in memory that PyTorch shares with workers however they are started."""

    def __init__(self) -> None:
        epoch: Any = torch.full((), _UNKNOWN, dtype=torch.int64)
        self._epoch = epoch.share_memory_()

    @property
    def known(self) -> int | None:
        """The epoch; None until it is told."""
        epoch = int(self._epoch)
        return None if epoch == _UNKNOWN else epoch

    def tell(self, epoch: int, /) -> None:
        """Sets the epoch."""
        self._epoch.fill_(epoch)


def _transforms(source: Items, transform: Transform | None, seed: int) -> SampleTransforms:
    return SampleTransforms(source, transform, seed=seed, epoch=_TensorEpoch(), draw=_draw)


def _draw() -> int:
    return int(torch.randint(_MOST, ()))


class TensorOutput:
    """Arrays as tensors that share their memory; see `readers.loading.output.Output`.

    Args:
        pin_memory: Whether the memory is page-locked, if there is a device that gains by it.
    """

    def __init__(self, *, pin_memory: bool) -> None:
        self._pin = pins(wanted=pin_memory, device=torch.cuda.is_available())

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any], /) -> NDArray[Any]:
        """Gives an array to be filled."""
        if not self._pin or dtype.kind not in _KINDS:
            return np.empty(shape, dtype)
        like = torch.from_numpy(np.empty(0, dtype))
        pinned: NDArray[Any] = torch.empty(shape, dtype=like.dtype, pin_memory=True).numpy()
        return pinned

    def deliver(self, array: NDArray[Any], /) -> object:
        """Gives the tensor; arrays of other things than numbers stay arrays."""
        if array.dtype.kind not in _KINDS:
            return array
        tensor = torch.from_numpy(np.require(array, requirements=["C", "W"]))
        return tensor.pin_memory() if self._pin and not tensor.is_pinned() else tensor
