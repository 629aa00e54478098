"""What a source of samples and a reader must do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from readers.manifest import Manifest
from readers.sample import Sample


@runtime_checkable
class Source(Protocol):
    """Samples in a fixed order.

    Reading is deterministic, safe from several threads at once, and what it returns stays valid
    after later calls. A source can be pickled. A negative index counts from the end; one out of
    range raises `IndexError`.
    """

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes in the order of their labels; empty without labels."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Sample: ...


@runtime_checkable
class SupportsReadMany(Protocol):
    """A source that fetches several samples more cheaply than one by one."""

    def read_many(self, indices: Sequence[int] | NDArray[np.int64], /) -> list[Sample]:
        """Reads samples, in the order asked; repeats are allowed."""


@runtime_checkable
class SupportsReadAhead(Protocol):
    """A source that fetches samples while something else is done."""

    def read_ahead(
        self, indices: Sequence[int] | NDArray[np.int64], /
    ) -> Callable[[], list[Sample]] | None:
        """Begins to read samples.

        Returns:
            What waits for them and gives them as `read_many` does; None where nothing is gained.
        """


@runtime_checkable
class Reader(Source, SupportsReadMany, Protocol):
    """A dataset opened for random access. Every reader is a source, so it can be packed again."""

    def __iter__(self) -> Iterator[Sample]:
        """Reads all samples in order."""

    @property
    def manifest(self) -> Manifest:
        """What the dataset says of itself."""

    @property
    def labels(self) -> NDArray[np.int32]:
        """Label of every sample, shape (samples,), memory-mapped; -1 without labels."""

    def close(self) -> None:
        """Gives back files and mappings. Closing twice is fine; reading afterwards raises."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...


def read_many(source: Source, indices: Sequence[int]) -> list[Sample]:
    """Reads several samples by the cheapest way that the source offers."""
    if isinstance(source, SupportsReadMany):
        return source.read_many(indices)
    return [source[index] for index in indices]
