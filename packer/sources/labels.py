"""Labels as other people wrote them, turned into class numbers."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readers.errors import SourceError

UNLABELLED = -1
"""Number of a sample without a label."""

_MAX_CLASSES = 1 << 20
_MAX_DIGITS = 20
_WHOLE = re.compile("-?[0-9]+")


class LabelColumn:
    """Gathers the label of each sample, as text, and numbers them at the end.

    Labels that are names get their place in the given classes, or in the sorted names. Where all
    are whole numbers (and aren't all among the given names), they are the class numbers already.

    Args:
        source: What the labels are from, for messages.

    Attributes:
        first_missing: Index of the first sample without a label; None if all have one.
    """

    def __init__(self, source: Path) -> None:
        self._source = source
        self.first_missing: int | None = None
        self._numbers = array("i")
        self._seen: dict[str, int] = {}
        self._first: list[int] = []

    def add(self, text: str | None) -> None:
        """Adds the label of the next sample; None or blank where it has none.

        Raises:
            SourceError: There are too many different labels for these to be classes.
        """
        text = text and text.strip()
        if not text:
            if self.first_missing is None:
                self.first_missing = len(self._numbers)
            self._numbers.append(UNLABELLED)
            return
        number = self._seen.setdefault(text, len(self._seen))
        if number == len(self._first):
            if number == _MAX_CLASSES:
                raise SourceError(
                    f"{self._source}: more than {_MAX_CLASSES} different labels, the last one "
                    f"{text!r}; these are no classes, choose another column (`--label-column`)",
                    path=str(self._source),
                )
            self._first.append(len(self._numbers))
        self._numbers.append(number)

    @property
    def empty(self) -> bool:
        """Whether no sample has a label."""
        return not self._seen

    def settle(
        self, classes: Sequence[str] | None, where: Callable[[int], str]
    ) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        """Numbers the labels.

        Args:
            classes: Names of the classes in the order of their labels; None to make them up.
            where: Says for a message where the sample of an index is.

        Returns:
            The classes, and the label of each sample: int32, `UNLABELLED` where it has none.

        Raises:
            SourceError: A label is none of the given classes, or a number beyond reason.
        """
        if self.empty:
            return (), np.asarray(self._numbers, np.int32)
        names, numbers = self._places(classes, where)
        places = np.asarray([*numbers, UNLABELLED], np.int32)
        return names, places[np.asarray(self._numbers, np.int32)]

    def _places(
        self, classes: Sequence[str] | None, where: Callable[[int], str]
    ) -> tuple[tuple[str, ...], list[int]]:
        pinned = {name: place for place, name in enumerate(classes or ())}
        if classes is not None and self._seen.keys() <= pinned.keys():
            return tuple(classes), [pinned[text] for text in self._seen]
        if all(map(_WHOLE.fullmatch, self._seen)):
            return self._numbered(classes, where)
        if classes is not None:
            text = next(text for text in self._seen if text not in pinned)
            first = self._first[self._seen[text]]
            raise SourceError(
                f"{where(first)}: the label {text!r} is none of the {len(classes)} given classes"
            )
        names = sorted(self._seen)
        place_of = {name: place for place, name in enumerate(names)}
        return tuple(names), [place_of[text] for text in self._seen]

    def _numbered(
        self, classes: Sequence[str] | None, where: Callable[[int], str]
    ) -> tuple[tuple[str, ...], list[int]]:
        limit = _MAX_CLASSES if classes is None else len(classes)
        numbers = []
        for text, first in zip(self._seen, self._first, strict=True):
            number = int(text) if len(text) < _MAX_DIGITS else limit
            if not 0 <= number < limit:
                raise SourceError(
                    f"{where(first)}: the label {text} is no number of a class from 0 to "
                    f"{limit - 1}; name the classes, or choose another column (`--label-column`)"
                )
            numbers.append(number)
        if classes is not None:
            return tuple(classes), numbers
        return tuple(map(str, range(max(numbers) + 1))), numbers
