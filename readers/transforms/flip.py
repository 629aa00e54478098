"""`RandomHorizontalFlip`."""

from __future__ import annotations

from readers.draws import Draws
from readers.errors import OptionError
from readers.transforms.view import View


class RandomHorizontalFlip:
    """Lets left and right change places, or not.

    Args:
        p: How probable the change is, 0 to 1.

    Raises:
        OptionError: It is no probability.
    """

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise OptionError(f"p is {p}: a probability lies between 0 and 1")
        self._p = p

    def narrow(self, view: View, draws: Draws, /) -> View | None:
        """Sees to the sides, see `ViewStep`."""
        if view.canvas is not None:
            return None
        return view.mirror() if draws.uniform() < self._p else view
