"""The way into `megengine.data.DataLoader`."""

from __future__ import annotations

from typing import Any

from readers.monitor.clock_source import ToldByFramework
from readers.monitor.hooks import Place, length_of, loader_facts, time_transforms
from readers.monitor.kinds import is_a
from readers.monitor.numbering import NumberingSampler
from readers.monitor.patches import Patches
from readers.monitor.proxies import (
    Collator,
    MapDataset,
    OpeningTransform,
    StreamDataset,
    Transform,
)
from readers.monitor.record import UNKNOWN, LoaderFacts

_MODULE = "megengine.data"
_AHEAD = 2


class MegEngineHooks:
    """Replaces dataset, sampler, transform and collator."""

    def recognises(self, loader: Any, /) -> bool:  # noqa: ANN401 - any object
        """Tells whether a loader is MegEngine's."""
        return is_a(loader, _MODULE, "DataLoader")

    def facts(self, loader: Any, /) -> LoaderFacts:  # noqa: ANN401 - MegEngine's loader
        """Tells what is known of a loader."""
        return loader_facts(
            "megengine",
            loader.dataset,
            workers=loader.num_workers,
            batch_size=loader.sampler.batch_size,
            prefetch=_AHEAD if loader.num_workers else 0,
            in_order=True,
            persistent=False,
            length=length_of(loader, UNKNOWN) if loader.datakind == "map" else UNKNOWN,
        )

    def install(self, loader: Any, place: Place, patches: Patches, /) -> bool:  # noqa: ANN401 - MegEngine's loader
        """Puts the proxies into a loader.

        Of a stream with workers but without `parallel_stream` the main process reads the samples:
        that is part of what the loop waits for, and the batches of the workers begin with their
        transform.
        """
        workers = loader.num_workers
        told = ToldByFramework(f"{_MODULE}.dataloader", field="idx", turns=workers)
        mapped = loader.datakind == "map"
        source = place.source(told, workers)
        dataset, transform = loader.dataset, loader.transform
        time_transforms(dataset, patches)
        if mapped:
            patches.put(loader, "dataset", MapDataset(dataset, source))
            patches.put(loader, "transform", Transform(transform))
        elif workers and not loader.parallel_stream:
            patches.put(loader, "transform", OpeningTransform(transform, source))
        else:
            patches.put(loader, "dataset", StreamDataset(dataset, source))
            patches.put(loader, "transform", Transform(transform))
        patches.put(loader, "collator", Collator(loader.collator, source))
        patches.put(loader, "sampler", NumberingSampler(loader.sampler, place.epoch))
        return mapped or not workers
