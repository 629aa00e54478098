"""The way into our own loader."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from readers.monitor.clock_source import ClockSource
from readers.monitor.hooks import Place, length_of, loader_facts
from readers.monitor.kinds import is_a
from readers.monitor.patches import Patches
from readers.monitor.record import UNKNOWN, LoaderFacts


class ReadersHooks:
    """Gives the workers their clocks."""

    def recognises(self, loader: Any, /) -> bool:  # noqa: ANN401 - any object
        """Tells whether it is what `readers.loader.MonitoredLoader` is made of."""
        return is_a(loader, "readers.loading", "Passes")

    def facts(self, loader: Any, /) -> LoaderFacts:  # noqa: ANN401 - our own, which imports this
        """Tells what is known of it."""
        manner = loader.manner
        facts = loader_facts(
            "readers",
            loader.dataset,
            workers=manner.workers,
            batch_size=UNKNOWN if manner.batch_size is None else manner.batch_size,
            prefetch=manner.prefetch,
            in_order=manner.in_order,
            persistent=True,
            length=length_of(loader, UNKNOWN),
        )
        return replace(facts, threads=manner.threads)

    def install(self, loader: Any, place: Place, patches: Patches, /) -> bool:  # noqa: ANN401 - as above
        """Puts the place of the rings where each worker takes its clock from."""
        patches.put(loader, "clocks", _Clocks(place))
        patches.put(loader, "turns", place.epoch)
        in_order: bool = loader.manner.in_order
        return in_order


@dataclass(frozen=True, slots=True)
class _Clocks:
    """The sources of clocks of all workers."""

    place: Place

    def __call__(self, worker: int, /) -> ClockSource:
        return self.place.source(_Number(worker), 0)


@dataclass(frozen=True, slots=True)
class _Number:
    """A number that is known beforehand."""

    worker: int

    def __call__(self, _batch: int, /) -> int:
        return self.worker
