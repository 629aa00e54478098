"""Stands in for an object of the user's: all that isn't measured goes through to it."""

from __future__ import annotations

from typing import Any


class Proxy:
    """Looks like the object that it wraps, also to `isinstance`; only its own methods differ.

    What it holds lies in its `__dict__`; everything else that is read or set is the object's.
    """

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - whatever the user has
        self.__dict__["_inner"] = inner

    @property
    def __class__(self) -> type:
        return type(self.__dict__["_inner"])

    @__class__.setter
    def __class__(self, kind: type) -> None:
        self.__dict__["_inner"].__class__ = kind

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the object has it
        if name == "_inner":
            raise AttributeError(name)
        return getattr(self.__dict__["_inner"], name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__dict__["_inner"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["_inner"], name)

    def __len__(self) -> int:
        return len(self.__dict__["_inner"])

    def __bool__(self) -> bool:
        return bool(self.__dict__["_inner"])

    def __repr__(self) -> str:
        return repr(self.__dict__["_inner"])

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), dict(self.__dict__))

    def __reduce_ex__(self, _protocol: object, /) -> tuple[object, ...]:
        return self.__reduce__()


def _restore(kind: type[Proxy], state: dict[str, Any]) -> Proxy:
    proxy = kind.__new__(kind)
    proxy.__dict__.update(state)
    return proxy


def unwrapped(thing: Any) -> Any:  # noqa: ANN401 - whatever was wrapped
    """Gives the object that a proxy stands for; anything else as it is."""
    return thing.__dict__["_inner"] if issubclass(type(thing), Proxy) else thing
