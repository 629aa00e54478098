"""What stands in for a loader that is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from readers.monitor.proxy import Proxy


class AttachedLoader(Proxy):
    """A loader that is measured: iterates like the loader and is the loader in all else.

    Attributes:
        monitor: What measures it.
    """

    _inner: Any
    monitor: Any

    def __init__(
        self,
        loader: Any,  # noqa: ANN401 - any framework's loader
        monitor: object,
        iterate: Callable[[Any], Iterator[Any]],
    ) -> None:
        super().__init__(loader)
        self.__dict__["monitor"] = monitor
        self.__dict__["_iterate"] = iterate

    def __iter__(self) -> Iterator[Any]:
        iterator: Iterator[Any] = self.__dict__["_iterate"](self._inner)
        return iterator

    def __call__(self) -> Iterator[Any]:
        """Iterates, as PaddlePaddle's loader also does when it is called."""
        return iter(self)
