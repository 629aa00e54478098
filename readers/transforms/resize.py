"""`Resize`, which gives the sizes that torchvision's gives."""

from __future__ import annotations

from readers.draws import Draws
from readers.errors import OptionError
from readers.transforms.interpolation import Interpolation, check_interpolation
from readers.transforms.size import as_size
from readers.transforms.view import View


class Resize:
    """Resizes the picture.

    As `torchvision.transforms.Resize`: the longer side is cut down to a whole number of pixels, not
    rounded.

    Args:
        size: Pixels of the shorter side, where the shape stays; or height and width.
        max_size: Greatest length of the longer side, if `size` is that of the shorter one, which
            then gets shorter; None for any.
        interpolation: How it is resized.

    Raises:
        OptionError: A value makes no sense.
        MissingDependencyError: The interpolation's library isn't installed.
    """

    def __init__(
        self,
        size: int | tuple[int, int],
        max_size: int | None = None,
        interpolation: Interpolation = "bilinear",
    ) -> None:
        as_size(size)
        if max_size is not None and (not isinstance(size, int) or max_size <= size):
            raise OptionError(
                f"max_size {max_size} bounds the longer side where size, here {size}, is that of "
                "the shorter one, and must be greater"
            )
        check_interpolation(interpolation)
        self._size = size
        self._max_size = max_size
        self._interpolation = interpolation

    def narrow(self, view: View, draws: Draws, /) -> View | None:  # noqa: ARG002 - not random
        """Sees to the size, see `ViewStep`."""
        return view.resize(*self._resized(*view.size), self._interpolation)

    def _resized(self, height: int, width: int) -> tuple[int, int]:
        if not isinstance(self._size, int):
            return self._size
        shorter, longer = min(height, width), max(height, width)
        # In this order, and in floats, as torchvision computes it.
        new_shorter, new_longer = self._size, int(self._size * longer / shorter)
        if self._max_size is not None and new_longer > self._max_size:
            new_shorter = max(1, int(self._max_size * new_shorter / new_longer))
            new_longer = self._max_size
        return (new_longer, new_shorter) if width <= height else (new_shorter, new_longer)
