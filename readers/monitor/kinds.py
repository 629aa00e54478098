"""Whose an object is, without importing that library."""

from __future__ import annotations


def is_a(thing: object, module: str, name: str) -> bool:
    """Tells whether an object is of a class, or of one made from it, that isn't imported here."""
    return any(
        kind.__name__ == name and f"{kind.__module__}.".startswith(f"{module}.")
        for kind in type(thing).__mro__
    )
