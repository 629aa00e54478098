"""Sizes as users give them."""

from __future__ import annotations

from typing import TypeAlias

from readers.errors import OptionError

Size: TypeAlias = int | tuple[int, int]
"""Height and width in pixels; one number for both."""


def as_size(size: Size) -> tuple[int, int]:
    """Gives height and width.

    Raises:
        OptionError: They are none.
    """
    height, width = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise OptionError(f"size {size} must be at least 1 pixel each way")
    return height, width
