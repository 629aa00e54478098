"""What is put in place of a loader's dataset, transform and collate function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from functools import partial, update_wrapper
from types import FunctionType
from typing import Any

from readers.monitor.clock import StageClock
from readers.monitor.clock_source import ClockSource
from readers.monitor.numbering import NumberedBatch, take_announced
from readers.monitor.proxy import Proxy
from readers.monitor.record import UNKNOWN
from readers.span import TRANSFORM, here, transforming


class MapDataset(Proxy):
    """A dataset by index: a batch begins with the first sample after it was announced."""

    _inner: Any
    _source: ClockSource

    def __init__(self, inner: Any, source: ClockSource) -> None:  # noqa: ANN401 - any dataset
        super().__init__(inner)
        self.__dict__["_source"] = source

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as the dataset has it
        batch, source, inner = take_announced(), self._source, self._inner
        clock = source.running() if batch is None else source.begin(batch.number, batch.epoch)
        if clock is None:
            return inner[index]
        clock.samples += 1
        return _item(clock, inner, index)


class BatchedDataset(MapDataset):
    """A dataset of PyTorch's, which is asked for whole batches."""

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as the dataset has it
        return self._inner[index]

    def __getitems__(self, indices: Iterable[Any]) -> Any:  # noqa: ANN401 - as the dataset has it
        number = epoch = UNKNOWN
        if isinstance(indices, NumberedBatch):
            number, epoch = indices.number, indices.epoch
            indices = indices[:]  # a plain list again, which is quicker to go through
        clock = self._source.begin(number, epoch)
        if clock is None:
            return self._read(indices)
        if type(indices) is list or isinstance(indices, Sized):  # a list is told at once
            clock.samples = len(indices)
        else:
            clock.samples = UNKNOWN
        times = clock.times
        try:
            if times is not None:
                return [times.read(self._one, index, self._inner) for index in indices]
            return self._read(indices)
        except BaseException:
            clock.abandon()
            raise

    def _read(self, indices: Iterable[Any]) -> Any:  # noqa: ANN401 - as the dataset has it
        inner = self._inner
        if getattr(inner, "__getitems__", None):
            return inner.__getitems__(indices)
        return [inner[index] for index in indices]

    def _one(self, index: Any) -> Any:  # noqa: ANN401 - as the dataset has it
        (sample,) = self._read([index])
        return sample


class UnbatchedDataset(MapDataset):
    """A dataset whose items are batches, or samples that the loader doesn't batch."""

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as the dataset has it
        clock = self._source.begin()
        if clock is None:
            return self._inner[index]
        clock.samples = len(index) if isinstance(index, (list, tuple)) else 1
        return _item(clock, self._inner, index)


class StreamDataset(Proxy):
    """A dataset that is iterated."""

    def __init__(self, inner: Any, source: ClockSource) -> None:  # noqa: ANN401 - any dataset
        super().__init__(inner)
        self.__dict__["_source"] = source

    def __iter__(self) -> Iterator[Any]:
        return _Stream(iter(self.__dict__["_inner"]), self.__dict__["_source"])


class _Stream:
    """The samples of a stream; a batch begins with the first after one has ended."""

    def __init__(self, samples: Iterator[Any], source: ClockSource) -> None:
        self._samples = samples
        self._source = source
        self._count = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:  # noqa: ANN401 - as the dataset has it
        batch = take_announced()
        clock = None if batch is not None else self._source.running()
        if clock is None:
            clock = self._source.begin(*(batch.number, batch.epoch) if batch is not None else ())
        if clock is None:
            return next(self._samples)
        try:
            if clock.times is None:
                sample = next(self._samples)
            else:
                sample = clock.times.read(self._next, self._count, None)
        except StopIteration:
            if clock.samples:
                clock.rest()
            else:
                clock.abandon()
            raise
        except BaseException:
            clock.abandon()
            raise
        clock.samples += 1
        self._count += 1
        return sample

    def _next(self, _place: int) -> Any:  # noqa: ANN401 - as the dataset has it
        return next(self._samples)


class Collate(Proxy):
    """A collate function, the last to run on a batch."""

    _inner: Any
    _source: ClockSource

    def __init__(self, inner: Any, source: ClockSource) -> None:  # noqa: ANN401 - any function
        super().__init__(inner)
        self.__dict__["_source"] = source

    def __call__(self, samples: Any, /) -> Any:  # noqa: ANN401 - as the function has it
        """Collates the samples of a batch."""
        return _collated(self._source, self._inner, samples)


class Collator(Collate):
    """A collator of MegEngine's."""

    def apply(self, inputs: Any) -> Any:  # noqa: ANN401 - as the collator has it
        """Collates the samples of a batch."""
        return _collated(self._source, self._inner.apply, inputs)


class Transform(Proxy):
    """A transform: an object of the user's or of MegEngine's."""

    _inner: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function has it
        """Transforms a sample, or whatever the function takes."""
        return _transformed(self._inner, *args, **kwargs)

    def apply(self, sample: Any) -> Any:  # noqa: ANN401 - as the transform has it
        """Transforms a sample."""
        with transforming:
            return self._inner.apply(sample)

    def apply_batch(self, samples: Any) -> Any:  # noqa: ANN401 - as the transform has it
        """Transforms the samples of a batch."""
        with transforming:
            return self._inner.apply_batch(samples)


class OpeningTransform(Transform):
    """A transform of a worker that gets samples read by the main process: it begins the batch."""

    _source: ClockSource

    def __init__(self, inner: Any, source: ClockSource) -> None:  # noqa: ANN401 - any transform
        super().__init__(inner)
        self.__dict__["_source"] = source

    def apply(self, sample: Any) -> Any:  # noqa: ANN401 - as the transform has it
        """Transforms a sample."""
        clock = self._source.running() or self._source.begin()
        if clock is None:
            return self._inner.apply(sample)
        clock.samples += 1
        try:
            return super().apply(sample)
        except BaseException:
            clock.abandon()
            raise


def _item(clock: StageClock, inner: Any, index: Any) -> Any:  # noqa: ANN401 - as the dataset has it
    try:
        if clock.times is not None:
            return clock.times.read(inner.__getitem__, index, inner)
        return inner[index]
    except BaseException:
        clock.abandon()
        raise


def timed_transform(transform: Any) -> Any:  # noqa: ANN401 - any function
    """Gives a transform whose calls are timed."""
    return _stand_in(transform, _transformed, transform) or Transform(transform)


def timed_collate(collate: Any, source: ClockSource) -> Any:  # noqa: ANN401 - any function
    """Gives a collate function that ends the batch."""
    return _stand_in(collate, _collated, source, collate) or Collate(collate, source)


def _stand_in(function: Any, call: Callable[..., Any], *first: Any) -> Any:  # noqa: ANN401 - any function
    """Gives what stands in for a plain function at half the cost of a `Proxy`; None for others."""
    if isinstance(function, FunctionType):
        return update_wrapper(partial(call, *first), function)
    return None


def _transformed(transform: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function has it
    clock = here.clock
    if clock is None:
        return transform(*args, **kwargs)
    return clock.timed(TRANSFORM, transform, args, kwargs)


def _collated(source: ClockSource, collate: Callable[[Any], Any], samples: Any) -> Any:  # noqa: ANN401 - as the function has it
    clock = source.running()
    if clock is None:
        return collate(samples)
    clock.collate()
    try:
        batch = collate(samples)
    except BaseException:
        clock.abandon()
        raise
    clock.end(batch)
    return batch
