"""The way into `paddle.io.DataLoader`."""

from __future__ import annotations

import sys
from typing import Any

from readers.monitor.clock_source import ToldByFramework
from readers.monitor.hooks import Place, length_of, loader_facts, time_transforms
from readers.monitor.kinds import is_a
from readers.monitor.numbering import NumberingSampler
from readers.monitor.patches import Patches
from readers.monitor.proxies import MapDataset, StreamDataset, UnbatchedDataset, timed_collate
from readers.monitor.record import UNKNOWN, LoaderFacts

_MODULE = "paddle.io"
_COLLATING = "paddle.io.dataloader.collate"
_MAP = 0


class PaddleHooks:
    """Replaces dataset, batch sampler and collate function."""

    def recognises(self, loader: Any, /) -> bool:  # noqa: ANN401 - any object
        """Tells whether a loader is PaddlePaddle's."""
        return is_a(loader, _MODULE, "DataLoader")

    def facts(self, loader: Any, /) -> LoaderFacts:  # noqa: ANN401 - PaddlePaddle's loader
        """Tells what is known of a loader."""
        size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
        return loader_facts(
            "paddle",
            loader.dataset,
            workers=loader.num_workers,
            batch_size=size if isinstance(size, int) else UNKNOWN,
            prefetch=loader.prefetch_factor,
            in_order=True,
            persistent=loader._persistent_workers,  # noqa: SLF001 - it has no public name
            length=length_of(loader, UNKNOWN),
        )

    def install(self, loader: Any, place: Place, patches: Patches, /) -> bool:  # noqa: ANN401 - PaddlePaddle's loader
        """Puts the proxies into a loader; workers that wait for the next epoch start anew."""
        mapped = loader.dataset_kind == _MAP
        source = place.source(ToldByFramework(_MODULE), loader.num_workers)
        dataset = loader.dataset
        time_transforms(dataset, patches)
        if not mapped:
            proxy: Any = StreamDataset(dataset, source)
        elif loader.auto_collate_batch:
            proxy = MapDataset(dataset, source)
        else:
            proxy = UnbatchedDataset(dataset, source)
        patches.put(loader, "dataset", proxy)
        patches.put(loader, "collate_fn", timed_collate(_collate(loader), source))
        if loader.batch_sampler is not None:
            numbering = NumberingSampler(loader.batch_sampler, place.epoch)
            patches.put(loader, "batch_sampler", numbering)
        patches.put(loader, "_iterator", None)
        return loader.batch_sampler is not None and (mapped or not loader.num_workers)


def _collate(loader: Any) -> Any:  # noqa: ANN401 - any function
    """Gives what the loader collates with, which may be what it chooses when nothing is given."""
    if loader.collate_fn is not None:
        return loader.collate_fn
    collating = sys.modules[_COLLATING]
    if loader.auto_collate_batch:
        return collating.default_collate_fn
    return collating.default_convert_fn
