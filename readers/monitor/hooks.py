"""How the monitor gets into a loader, whatever its framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from readers.monitor.clock_source import ClockSource, WorkerNumber
from readers.monitor.facts import dataset_facts, parts_of, usable_cores
from readers.monitor.numbering import EpochCounter
from readers.monitor.patches import Patches
from readers.monitor.proxies import timed_transform
from readers.monitor.record import LoaderFacts

_TRANSFORMS = ("transform", "transforms", "target_transform")


@dataclass(frozen=True, slots=True)
class Place:
    """What the hooks get to work with."""

    rings: str
    os_counters: bool
    samples: int
    main: int
    """The main process."""
    epoch: EpochCounter

    def source(self, worker: WorkerNumber, workers: int) -> ClockSource:
        """Gives what the proxies take their clock from.

        Args:
            worker: How a worker finds its number.
            workers: Worker processes; without, the main process makes the batches.
        """
        return ClockSource(
            self.rings,
            worker,
            self.os_counters,
            self.samples,
            elsewhere=self.main if workers else -1,
        )


class Hooks(Protocol):
    """The way into the loaders of one framework."""

    def recognises(self, loader: Any, /) -> bool:  # noqa: ANN401 - any object
        """Tells whether a loader is of this framework."""

    def facts(self, loader: Any, /) -> LoaderFacts:  # noqa: ANN401 - the framework's loader
        """Tells what is known of a loader."""

    def install(self, loader: Any, place: Place, patches: Patches, /) -> bool:  # noqa: ANN401 - the framework's loader
        """Puts the proxies into a loader.

        Returns:
            Whether the loop gets batches in the order of their numbers.
        """


def length_of(loader: Any, unknown: int) -> int:  # noqa: ANN401 - any loader
    """Tells the batches of an epoch."""
    try:
        return len(loader)
    except (TypeError, ValueError, RuntimeError, AssertionError):  # as frameworks say there is none
        return unknown


def loader_facts(
    framework: str,
    dataset: object,
    *,
    workers: int,
    batch_size: int,
    prefetch: int,
    in_order: bool,
    persistent: bool,
    length: int,
) -> LoaderFacts:
    """Adds what is known of the dataset and the machine."""
    about = dataset_facts(dataset)
    return LoaderFacts(
        framework=framework,
        workers=workers,
        threads=False,
        batch_size=batch_size,
        prefetch=prefetch,
        in_order=in_order,
        persistent=persistent,
        length=length,
        cores=usable_cores(),
        storage=about.storage,
        format=about.format,
        dataset=about.path,
        pixels=about.pixels,
    )


def time_transforms(dataset: object, patches: Patches) -> None:
    """Times the transforms that a dataset holds as plain attributes, as torchvision does."""
    for part in parts_of(dataset):
        attributes = getattr(part, "__dict__", {})
        for name in _TRANSFORMS:
            if callable(attributes.get(name)):
                patches.put(part, name, timed_transform(attributes[name]))
