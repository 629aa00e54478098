"""What is to be seen of a picture, known from its size alone, before anything is decoded."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from readers.draws import Draws
from readers.rectangle import Box, Rectangle
from readers.transforms.interpolation import Interpolation


class View(NamedTuple):
    """A part of a picture, resampled at most once, then mirrored, then set into a canvas."""

    bounds: Rectangle
    """The pixels of the picture that count: what was cropped away before resampling doesn't."""
    box: Box
    """The part of the picture that is resampled."""
    height: int
    """Of the result, the canvas left aside, in pixels."""
    width: int
    """Likewise."""
    interpolation: Interpolation | None = None
    """How the box is resampled to the height and width; None where it has these already."""
    mirrored: bool = False
    """Whether left and right change places, after resampling."""
    canvas: Rectangle | None = None
    """Where a canvas of its height and width has the result's corner; black all around."""

    @classmethod
    def whole(cls, height: int, width: int) -> View:
        """Gives the view of all of a picture, as it is."""
        return cls(Rectangle(0, 0, height, width), Box(0, 0, height, width), height, width)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of what comes out."""
        return (self.height, self.width) if self.canvas is None else self.canvas[2:]

    def crop(self, part: Rectangle) -> View | None:
        """Takes a part of the result; None if that would be of the canvas."""
        if self.canvas is not None:
            return None
        top, left, height, width = part
        if self.mirrored:
            left = self.width - left - width
        box, bounds = self.box, self.bounds
        if self.interpolation is None:
            bounds = Rectangle(bounds.top + top, bounds.left + left, height, width)
            box = Box(*bounds)
        else:
            down, across = box.height / self.height, box.width / self.width
            box = Box(box.top + top * down, box.left + left * across, height * down, width * across)
        return self._replace(bounds=bounds, box=box, height=height, width=width)

    def resize(self, height: int, width: int, interpolation: Interpolation) -> View | None:
        """Gives the result another size; None if it was resampled already."""
        if (height, width) == self.size:
            return self
        if self.interpolation is not None or self.canvas is not None:
            return None
        return self._replace(height=height, width=width, interpolation=interpolation)

    def mirror(self) -> View | None:
        """Turns the result left to right; None if it is set into a canvas."""
        return None if self.canvas is not None else self._replace(mirrored=not self.mirrored)

    def pad(self, canvas: Rectangle) -> View | None:
        """Sets the result into a canvas; None if it is in one."""
        return None if self.canvas is not None else self._replace(canvas=canvas)


@runtime_checkable
class ViewStep(Protocol):
    """A transform that says what it wants to see, so that nothing else has to be decoded."""

    def narrow(self, view: View, draws: Draws, /) -> View | None:
        """Changes the view.

        Args:
            view: What the steps before want to see.
            draws: Random numbers of the sample.

        Returns:
            What is to be seen now. None if the step needs pixels to go on from: it is then given
            the view of these as a whole (`View.whole`), which it has to take.
        """
