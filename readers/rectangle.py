"""Parts of pictures, and what becomes of them when the picture is turned upright.

Orientations are those of EXIF, 1 to 8 (Exif 2.32, table 6).
"""

from __future__ import annotations

from typing import NamedTuple

from readers.errors import OptionError

QUARTER_TURNED = 5
"""The first of the orientations by which height and width change places."""
_UPSIDE_DOWN = frozenset({3, 4, 7, 8})
_MIRRORED = frozenset({2, 3, 6, 7})
"""After a quarter turn, where there is one: see `readers.stored.orient`."""


class Rectangle(NamedTuple):
    """Whole pixels of a picture."""

    top: int
    left: int
    height: int
    width: int


class Box(NamedTuple):
    """Part of a picture whose borders need not fall between pixels; in pixels, from its corner."""

    top: float
    left: float
    height: float
    width: float


def turn_size(height: int, width: int, orientation: int) -> tuple[int, int]:
    """Gives height and width after the turn, or before it: it is the same."""
    return (width, height) if orientation >= QUARTER_TURNED else (height, width)


def turn_back(part: Rectangle, height: int, width: int, orientation: int) -> Rectangle:
    """Finds where a part of the upright picture is stored.

    Args:
        part: In the upright picture.
        height: Of the upright picture.
        width: Likewise.
        orientation: By which it was turned upright.
    """
    top, left, part_height, part_width = part
    if orientation in _UPSIDE_DOWN:
        top = height - top - part_height
    if orientation in _MIRRORED:
        left = width - left - part_width
    if orientation >= QUARTER_TURNED:
        return Rectangle(left, top, part_width, part_height)
    return Rectangle(top, left, part_height, part_width)


def turn(part: Box, height: int, width: int, orientation: int) -> Box:
    """Finds where a part of a stored picture is when it is upright.

    Args:
        part: In the picture as stored.
        height: Of the picture as stored.
        width: Likewise.
        orientation: By which it is turned upright.
    """
    top, left, part_height, part_width = part
    if orientation >= QUARTER_TURNED:
        top, left, part_height, part_width = left, top, part_width, part_height
        height, width = width, height
    if orientation in _UPSIDE_DOWN:
        top = height - top - part_height
    if orientation in _MIRRORED:
        left = width - left - part_width
    return Box(top, left, part_height, part_width)


def check_inside(region: tuple[int, int, int, int], height: int, width: int) -> Rectangle:
    """Gives a region of a picture as a rectangle.

    Raises:
        OptionError: It reaches beyond the picture, or is empty.
    """
    part = Rectangle(*region)
    if not (
        0 <= part.top < part.top + part.height <= height
        and 0 <= part.left < part.left + part.width <= width
    ):
        raise OptionError(
            f"the region (top, left, height, width) {tuple(region)} doesn't lie within the picture "
            f"of {height} x {width} pixels (height x width, upright)"
        )
    return part
