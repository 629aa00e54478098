"""How far a loader has come, as a state that training saves and goes on from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from readers.errors import OptionError
from readers.sampling import Indices, Sampling

State: TypeAlias = dict[str, int | list[int]]
"""Plain numbers: it can be pickled, and written as JSON."""


class Progress:
    """The batches of one epoch, and which of them have been delivered.

    The position is the place in the epoch before which everything was delivered. Where batches are
    delivered out of order, those beyond it are noted by their distance in batches.
    """

    def __init__(
        self,
        sampling: Sampling,
        epoch: int,
        position: int = 0,
        beyond: frozenset[int] = frozenset(),
    ) -> None:
        self.epoch = epoch
        self._sampling = sampling
        self._began = position
        self._skipped = beyond
        self._count = sampling.count(position)
        self._first = 0
        self._beyond = set(beyond)

    @classmethod
    def restore(cls, sampling: Sampling, state: Mapping[str, object]) -> Progress:
        """Makes a progress out of what `state` gave.

        Raises:
            OptionError: The state is none, or belongs to other samples or another order.
        """
        epoch, position, beyond = state.get("epoch"), state.get("position"), state.get("beyond")
        stride = state.get("stride")
        if not (
            isinstance(epoch, int)
            and isinstance(position, int)
            and isinstance(beyond, list)
            and isinstance(stride, int)
        ):
            raise OptionError(f"this is no state of a loader: {state!r}")
        for name, value in sampling.identity.items():
            if state.get(name) != value:
                raise OptionError(
                    f"the state was saved with {name} {state.get(name)}, this loader has {value}: "
                    "its position would mean other samples"
                )
        if beyond and stride != sampling.stride:
            raise OptionError(
                f"the state was saved out of order with {stride} samples a step, this loader has "
                f"{sampling.stride}: keep batch_size and world_size, or save with in_order=True"
            )
        return cls(sampling, epoch, position, frozenset(beyond))

    @property
    def together(self) -> int:
        """Batches that are best read at once."""
        return self._sampling.together

    @property
    def done(self) -> bool:
        """Whether everything has been delivered; unknown counts as not."""
        return self._count is not None and self._first >= self._count

    def state(self) -> State:
        """Gives the state: equal states are equal to the byte."""
        return {
            "epoch": self.epoch,
            "position": self._began + self._first * self._sampling.stride,
            "beyond": sorted(number - self._first for number in self._beyond),
            "stride": self._sampling.stride,
            **self._sampling.identity,
        }

    def remaining(self) -> Iterator[tuple[int, Indices]]:
        """Gives the batches that weren't delivered when this progress began, with numbers."""
        batches = self._sampling.batches(self.epoch, self._began)
        return (pair for pair in enumerate(batches) if pair[0] not in self._skipped)

    def count(self) -> int | None:
        """Gives the number of batches in `remaining`; None if it isn't known."""
        return None if self._count is None else self._count - len(self._skipped)

    def deliver(self, number: int) -> None:
        """Notes that the batch of that number was delivered."""
        self._beyond.add(number)
        while self._first in self._beyond:
            self._beyond.remove(self._first)
            self._first += 1
