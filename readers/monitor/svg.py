"""A chart as inline SVG: a plot area with axes, to which shapes are added in data coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

WIDTH = 920
_LEFT, _RIGHT, _TOP, _BOTTOM = 86, 28, 10, 34
_TICKS = 4


class Chart:
    """A chart; `x` and `y` are in data coordinates, from 0 to the limits, y upwards.

    Colours come from the style sheet: a shape's class is its series.
    """

    def __init__(self, label: str, *, x_end: float, y_end: float, height: int) -> None:
        """Begins an empty chart.

        Args:
            label: What it shows, for those who can't see it.
            x_end: Largest x.
            y_end: Largest y.
            height: Of the whole chart in pixels.
        """
        self._label = label
        self._x_end = x_end or 1.0
        self._y_end = y_end or 1.0
        self._height = height
        self._shapes: list[str] = []

    def _x(self, value: float) -> float:
        return _LEFT + value / self._x_end * (WIDTH - _LEFT - _RIGHT)

    def _y(self, value: float) -> float:
        return self._height - _BOTTOM - value / self._y_end * (self._height - _TOP - _BOTTOM)

    def bar(
        self, series: str, begin: tuple[float, float], end: tuple[float, float], tip: str = ""
    ) -> None:
        """Adds a rectangle from the lower left to the upper right corner."""
        left, right = self._x(begin[0]), self._x(end[0])
        top, bottom = self._y(end[1]), self._y(begin[1])
        size = f'width="{max(right - left, 0.4):.1f}" height="{max(bottom - top, 0):.1f}"'
        title = f"<title>{escape(tip)}</title>" if tip else ""
        self._shapes.append(
            f'<rect class="{series}" x="{left:.1f}" y="{top:.1f}" {size}>{title}</rect>'
        )

    def area(self, series: str, points: Sequence[tuple[float, float]]) -> None:
        """Adds a line and the area under it."""
        line = self._path(points)
        under = self._path([*points, (points[-1][0], 0.0), (points[0][0], 0.0)])
        self._shapes.append(f'<polygon class="{series} under" points="{under}"/>')
        self._shapes.append(f'<polyline class="{series} line" points="{line}"/>')

    def level(self, y: float, text: str) -> None:
        """Adds a dashed line across, with its name at the right."""
        at = self._y(y)
        end = WIDTH - _RIGHT
        self._shapes.append(
            f'<line class="level" x1="{_LEFT}" x2="{end}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text class="level-name" x="{end - 4}" y="{at - 4:.1f}">{escape(text)}</text>'
        )

    def y_ticks(self, shown: Callable[[float], str]) -> None:
        """Adds a grid and its numbers at the left."""
        step = nice_step(self._y_end)
        for index in range(math.floor(self._y_end / step + 1e-9) + 1):
            at = f"{self._y(index * step):.1f}"
            grid = f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at}" y2="{at}"/>'
            self._shapes.insert(0, grid)
            self._name(index * step, shown(index * step))

    def row(self, y: float, text: str) -> None:
        """Names a row at the left."""
        self._name(y, text)

    def x_ticks(self, places: Sequence[tuple[float, str]], caption: str) -> None:
        """Adds numbers below, and what they are."""
        base = self._height - _BOTTOM
        for place, text in places:
            self._shapes.append(
                f'<text class="x" x="{self._x(place):.1f}" y="{base + 15}">{escape(text)}</text>'
            )
        middle, low = (_LEFT + WIDTH - _RIGHT) / 2, self._height - 3
        self._shapes.append(
            f'<text class="caption" x="{middle:.0f}" y="{low}">{escape(caption)}</text>'
        )

    def _path(self, points: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in points)

    def _name(self, y: float, text: str) -> None:
        self._shapes.append(
            f'<text class="y" x="{_LEFT - 8}" y="{self._y(y) + 4:.1f}">{escape(text)}</text>'
        )

    def __str__(self) -> str:
        shapes = "\n".join(self._shapes)
        box = f'viewBox="0 0 {WIDTH} {self._height}"'
        return f'<svg {box} role="img" aria-label="{escape(self._label)}">\n{shapes}\n</svg>'


def nice_step(end: float) -> float:
    """Gives a round step (1, 2 or 5 of a power of ten) that divides a range into a few."""
    rough = end / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)


def even_ticks(end: float, shown: Callable[[float], str]) -> list[tuple[float, str]]:
    """Gives round places along an axis and their names."""
    if end <= 0:
        return []
    step = nice_step(end / 2)
    return [(index * step, shown(index * step)) for index in range(math.floor(end / step) + 1)]
