"""How worker processes are started."""

from __future__ import annotations

from multiprocessing.context import ForkContext, ForkServerContext, SpawnContext
from typing import TypeAlias

from readers.errors import OptionError

Context: TypeAlias = ForkContext | ForkServerContext | SpawnContext

_START_METHODS: dict[str, type[Context]] = {
    "fork": ForkContext,
    "forkserver": ForkServerContext,
    "spawn": SpawnContext,
}


def start_method(name: str) -> Context:
    """Gives the way to start processes that has that name.

    Raises:
        OptionError: There is none.
    """
    if name not in _START_METHODS:
        raise OptionError(f"worker_kind {name!r} is none of thread, {', '.join(_START_METHODS)}")
    return _START_METHODS[name]()
