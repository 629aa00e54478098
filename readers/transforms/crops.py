"""`RandomResizedCrop` and `CenterCrop`, which cut where those of torchvision do."""

from __future__ import annotations

import math

from readers.draws import Draws
from readers.errors import OptionError
from readers.rectangle import Rectangle
from readers.transforms.interpolation import Interpolation, check_interpolation
from readers.transforms.size import Size, as_size
from readers.transforms.view import View

_ATTEMPTS = 10


class RandomResizedCrop:
    """Crops a random part of a random shape, and resizes it to one size.

    The algorithm is that of `torchvision.transforms.RandomResizedCrop`, and so is the distribution
    of the parts; that of the random numbers isn't. It goes back to Szegedy et al.,
    https://arxiv.org/abs/1409.4842, section 6.

    Args:
        size: Height and width of the result in pixels; one number for both.
        scale: Least and greatest share of the picture's area.
        ratio: Least and greatest width / height; its logarithm is drawn evenly.
        interpolation: How it is resized.

    Raises:
        OptionError: A value makes no sense.
        MissingDependencyError: The interpolation's library isn't installed.
    """

    def __init__(
        self,
        size: Size,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: Interpolation = "bilinear",
    ) -> None:
        self._height, self._width = as_size(size)
        if not 0 < scale[0] <= scale[1]:
            raise OptionError(f"scale {scale} must be two positive numbers, the smaller one first")
        if not 0 < ratio[0] <= ratio[1]:
            raise OptionError(f"ratio {ratio} must be two positive numbers, the smaller one first")
        check_interpolation(interpolation)
        self._scale = scale
        self._ratio = ratio
        self._interpolation = interpolation

    def narrow(self, view: View, draws: Draws, /) -> View | None:
        """Sees to the part, see `ViewStep`."""
        if view.interpolation is not None:
            return None
        part = draw_part(*view.size, self._scale, self._ratio, draws)
        cropped = view.crop(part)
        if cropped is None:
            return None
        return cropped.resize(self._height, self._width, self._interpolation)


class CenterCrop:
    """Crops the middle; a picture that is too small for it gets black borders.

    Both as `torchvision.transforms.CenterCrop` does it, its rounding included.

    Args:
        size: Height and width in pixels; one number for both.

    Raises:
        OptionError: The size makes no sense.
    """

    def __init__(self, size: Size) -> None:
        self._height, self._width = as_size(size)

    def narrow(self, view: View, draws: Draws, /) -> View | None:  # noqa: ARG002 - not random
        """Sees to the middle, see `ViewStep`."""
        height, width = view.size
        top, rows = _middle(height, self._height)
        left, columns = _middle(width, self._width)
        cropped = view.crop(Rectangle(max(0, top), max(0, left), rows, columns))
        if cropped is None or (rows, columns) == (self._height, self._width):
            return cropped
        return cropped.pad(Rectangle(max(0, -top), max(0, -left), self._height, self._width))


def draw_part(
    height: int,
    width: int,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    draws: Draws,
) -> Rectangle:
    """Draws a part of a picture, see `RandomResizedCrop`.

    After ten parts that don't fit it is the middle of the picture, in the nearest ratio.
    """
    area = height * width
    least, greatest = math.log(ratio[0]), math.log(ratio[1])
    for _ in range(_ATTEMPTS):
        wanted_area = area * draws.uniform(*scale)
        wanted_ratio = math.exp(draws.uniform(least, greatest))
        columns = round(math.sqrt(wanted_area * wanted_ratio))
        rows = round(math.sqrt(wanted_area / wanted_ratio))
        if 0 < columns <= width and 0 < rows <= height:
            top = draws.below(height - rows + 1)
            return Rectangle(top, draws.below(width - columns + 1), rows, columns)
    rows, columns = height, width
    if width / height < ratio[0]:
        rows = round(width / ratio[0])
    elif width / height > ratio[1]:
        columns = round(height * ratio[1])
    return Rectangle((height - rows) // 2, (width - columns) // 2, rows, columns)


def _middle(length: int, wanted: int) -> tuple[int, int]:
    """Gives where the middle begins, below 0 if it doesn't fill what is wanted, and its length."""
    if wanted > length:
        return -((wanted - length) // 2), length
    return round((length - wanted) / 2), wanted
