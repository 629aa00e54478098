"""Our readers as datasets of PaddlePaddle, and tensors out of our loader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import paddle
import paddle.device
import paddle.distributed
import paddle.io
from numpy.typing import NDArray

from readers.epochs import SharedEpoch
from readers.loading.maker import Items
from readers.loading.output import pins
from readers.loading.transform import Transform
from readers.sampling import EpochSampling
from readers.streaming import BLOCK, SampleTransforms

_KINDS = "bifc"
_MOST = (1 << 63) - 1


class MapDataset(paddle.io.Dataset):  # type: ignore[misc,type-arg,unused-ignore] # may be untyped
    """A source for `paddle.io.DataLoader`, by index.

    Args:
        source: A dataset, or any sequence.
        transform: Takes a sample as the source gives it. None for (pixels, label): `uint8`, shape
            (height, width, 3), and an int, None in a dataset without labels.
            `readers.loading.transform.ImageTransform` makes one of a function of pixels.
        seed: Of the random numbers of transforms that take them from `readers.draws`. They depend
            on it, the epoch and the sample alone once `set_epoch` is called before each epoch;
            until then on NumPy's generator, which Paddle seeds in each worker.
    """

    def __init__(self, source: Items, transform: Transform | None = None, *, seed: int = 0) -> None:
        super().__init__()
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


class StreamDataset(paddle.io.IterableDataset):  # type: ignore[misc,type-arg,unused-ignore] # as above
    """A source for `paddle.io.DataLoader`, as a stream.

    It splits itself over the workers of the loader and over ranks: each sample goes to one worker
    of one rank, and every rank gets the same number of samples (see `EpochSampling`). Call
    `set_epoch` before each epoch, or a shuffled stream repeats its order. Paddle 3.3 hangs if its
    workers persist over a stream: leave `persistent_workers` off.

    Args:
        source: A dataset, or any sequence.
        transform: As for `MapDataset`.
        shuffle: Whether each epoch has an order of its own.
        seed: Of the order, and of random numbers as for `MapDataset`.
        rank: Number of this process; None asks `paddle.distributed`, which is 0 without it.
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
            rank=paddle.distributed.get_rank() if rank is None else rank,
            world_size=paddle.distributed.get_world_size() if world_size is None else world_size,
        )

    @property
    def dataset(self) -> Items:
        """The source."""
        return self._samples.source

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass go over that epoch."""
        self._samples.epoch.tell(epoch)

    def __iter__(self) -> Iterator[Any]:
        info: Any = paddle.io.get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        return self._samples.stream(self._sampling, worker, workers)


def _transforms(source: Items, transform: Transform | None, seed: int) -> SampleTransforms:
    return SampleTransforms(source, transform, seed=seed, epoch=SharedEpoch(), draw=_draw)


def _draw() -> int:
    return int(np.random.randint(_MOST))  # noqa: NPY002 - the one that Paddle seeds


class TensorOutput:
    """Arrays as tensors that share their memory; see `readers.loading.output.Output`.

    Args:
        pin_memory: Whether tensors are copied into page-locked memory, if there is a device that
            gains by it.
    """

    def __init__(self, *, pin_memory: bool) -> None:
        self._pin = pins(wanted=pin_memory, device=paddle.device.is_compiled_with_cuda())

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any], /) -> NDArray[Any]:
        """Gives an array to be filled."""
        return np.empty(shape, dtype)

    def deliver(self, array: NDArray[Any], /) -> object:
        """Gives the tensor; arrays that Paddle has no type for stay arrays."""
        if array.dtype.kind not in _KINDS and array.dtype != np.uint8:
            return array
        if self._pin:
            return paddle.to_tensor(array, place=paddle.CUDAPinnedPlace())
        return paddle.from_dlpack(np.require(array, requirements=["C", "W"]))
