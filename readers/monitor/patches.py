"""Attributes of the user's objects that were replaced, and how they come back."""

from __future__ import annotations

from typing import Any


class Patches:
    """Replaces plain attributes and puts them back, the last one first."""

    def __init__(self) -> None:
        self._before: list[tuple[dict[str, Any], str, object, object]] = []

    def put(self, owner: object, name: str, value: object) -> None:
        """Replaces an attribute in the object's `__dict__`, past any guard of its class."""
        attributes = vars(owner)
        self._before.append((attributes, name, attributes[name], value))
        attributes[name] = value

    def undo(self) -> None:
        """Puts back what was replaced, unless somebody has replaced it again."""
        while self._before:
            attributes, name, before, value = self._before.pop()
            if attributes.get(name) is value:
                attributes[name] = before
