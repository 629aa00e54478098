"""Tells the clock of this thread, where one runs, that reading or decoding goes on.

A leaf, because readers and decoders import it: without a clock a span costs two attribute loads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")

IDLE: Final = 0
DATASET: Final = 1
READ: Final = 2
DECODE: Final = 3
TRANSFORM: Final = 4
COLLATE: Final = 5


class Clock(Protocol):
    """What charges time to stages."""

    def enter(self, stage: int, /) -> None:
        """Charges from now on to another stage."""

    def leave(self) -> None:
        """Charges from now on to the stage that was charged before."""

    def timed(
        self,
        stage: int,
        call: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        /,
    ) -> T:
        """Calls something and charges to a stage how long that takes, as `enter` and `leave` do."""


class _Here(threading.local):
    clock: Clock | None = None


here = _Here()
"""The clock of the batch that this thread is making; None most of the time."""


class Span:
    """A part of the work on a batch: a context manager that any threads may share."""

    __slots__ = ("_stage",)

    def __init__(self, stage: int) -> None:
        self._stage = stage

    def __enter__(self) -> None:
        if (clock := here.clock) is not None:
            clock.enter(self._stage)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        if (clock := here.clock) is not None:
            clock.leave()


reading = Span(READ)
"""`with reading:` bytes come from storage."""
decoding = Span(DECODE)
"""`with decoding:` bytes become pixels."""
transforming = Span(TRANSFORM)
"""`with transforming:` the user's transform runs."""
