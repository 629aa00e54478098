"""The way into `torch.utils.data.DataLoader` and what is made from it."""

from __future__ import annotations

from typing import Any

from readers.monitor.clock_source import ToldByFramework
from readers.monitor.hooks import Place, length_of, loader_facts, time_transforms
from readers.monitor.kinds import is_a
from readers.monitor.numbering import NumberingSampler
from readers.monitor.patches import Patches
from readers.monitor.proxies import BatchedDataset, StreamDataset, UnbatchedDataset, timed_collate
from readers.monitor.record import UNKNOWN, LoaderFacts

_MODULE = "torch.utils.data"
_MAP = 0


class TorchHooks:
    """Replaces dataset, batch sampler and collate function."""

    def recognises(self, loader: Any, /) -> bool:  # noqa: ANN401 - any object
        """Tells whether a loader is PyTorch's."""
        return is_a(loader, _MODULE, "DataLoader")

    def facts(self, loader: Any, /) -> LoaderFacts:  # noqa: ANN401 - PyTorch's loader
        """Tells what is known of a loader."""
        return loader_facts(
            "torch",
            loader.dataset,
            workers=loader.num_workers,
            batch_size=_batch_size(loader),
            prefetch=loader.prefetch_factor or 0,
            in_order=getattr(loader, "in_order", True),
            persistent=loader.persistent_workers,
            length=length_of(loader, UNKNOWN),
        )

    def install(self, loader: Any, place: Place, patches: Patches, /) -> bool:  # noqa: ANN401 - PyTorch's loader
        """Puts the proxies into a loader; workers that wait for the next epoch start anew."""
        mapped = loader._dataset_kind == _MAP  # noqa: SLF001 - fixed when the loader is made
        source = place.source(ToldByFramework(_MODULE), loader.num_workers)
        dataset = loader.dataset
        batched = loader.batch_sampler is not None
        time_transforms(dataset, patches)
        if not mapped:
            proxy: Any = StreamDataset(dataset, source)
        elif batched:
            proxy = BatchedDataset(dataset, source)
        else:
            proxy = UnbatchedDataset(dataset, source)
        patches.put(loader, "dataset", proxy)
        patches.put(loader, "collate_fn", timed_collate(loader.collate_fn, source))
        if batched:
            numbering = NumberingSampler(loader.batch_sampler, place.epoch)
            patches.put(loader, "batch_sampler", numbering)
        patches.put(loader, "_iterator", None)
        return batched and loader.in_order and (mapped or not loader.num_workers)


def _batch_size(loader: Any) -> int:  # noqa: ANN401 - PyTorch's loader
    size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) else UNKNOWN
