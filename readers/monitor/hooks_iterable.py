"""The way into anything else that gives batches: only the steps of the loop are timed."""

from __future__ import annotations

from typing import Any

from readers.monitor.hooks import Place, length_of, loader_facts
from readers.monitor.patches import Patches
from readers.monitor.record import UNKNOWN, LoaderFacts


class IterableHooks:
    """Replaces nothing."""

    def recognises(self, loader: Any, /) -> bool:  # noqa: ANN401 - any object
        """Tells whether batches can be had by iterating."""
        return hasattr(loader, "__iter__")

    def facts(self, loader: Any, /) -> LoaderFacts:  # noqa: ANN401 - any iterable
        """Tells its length, if it has one."""
        return loader_facts(
            "iterable",
            getattr(loader, "dataset", None),
            workers=0,
            batch_size=UNKNOWN,
            prefetch=UNKNOWN,
            in_order=True,
            persistent=False,
            length=length_of(loader, UNKNOWN),
        )

    def install(self, _loader: Any, _place: Place, _patches: Patches, /) -> bool:  # noqa: ANN401 - any iterable
        """Leaves it as it is."""
        return False
