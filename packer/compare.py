"""Proves a dataset equal to what it was packed from, or to another dataset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xxhash
from numpy.typing import NDArray

from packer.engines.local import InOrder, worker_count
from packer.fault import Fault
from packer.image_policy import Region, from_json
from packer.prepare import prepare
from packer.progress import Meter, OnProgress
from packer.protocols import PackSource
from packer.sources.packed import PackedSource
from readers.checksum import digest
from readers.dataset import Dataset
from readers.decode import decode
from readers.errors import SampleError
from readers.manifest import Manifest
from readers.sample import Pixels, Sample, bytes_of, is_encoded


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the comparison found."""

    samples: int
    """Samples that were compared."""
    faults: list[Fault]


def compare(
    dataset: Dataset,
    source: PackSource,
    *,
    workers: int = 0,
    on_progress: OnProgress | None = None,
) -> Comparison:
    """Holds every sample of a dataset against the source's: key, path, label, fields and image.

    Samples are matched by their paths. An image is equal if its bytes are, or if the dataset's
    image policy makes its bytes of the source's image, or that of another dataset the source's
    bytes of ours. One that was rewritten for regions is equal if it decodes to the same upright
    pixels: that is proved by libjpeg-turbo, not by the kernel that rewrote it. Samples that the
    dataset's ledger says were not packed aren't missed.

    Args:
        dataset: The dataset.
        source: A source, such as the one that it was packed from, or `PackedSource` of another.
        workers: Threads; 0 for one a core.
        on_progress: Called from this thread, some ten times a second.
    """
    meter = Meter(on_progress)
    meter.begin("compare", len(dataset))
    comparer = _Comparer(dataset, source)
    pairs = np.arange(len(comparer.positions), dtype=np.int64)
    faults = list(comparer.unmatched())
    pool = InOrder(comparer.compare, workers=worker_count(workers), block=8)
    for verdict in pool.run(pairs):
        faults += verdict.faults
        meter.count(1, verdict.nbytes)
    return Comparison(len(pairs), faults)


@dataclass(frozen=True, slots=True)
class _Verdict:
    faults: tuple[Fault, ...]
    nbytes: int
    weight: int = 0


class _Comparer:
    def __init__(self, dataset: Dataset, source: PackSource) -> None:
        self._dataset = dataset
        self._source = source
        self._ours = _Making(dataset.manifest)
        self._theirs = _Making(source.manifest) if isinstance(source, PackedSource) else None
        self._omitted = {
            item.path for item in dataset.manifest.ledger if item.action in {"skipped", "left out"}
        }
        index = dataset.index
        here = _hashes(index.path(row) for row in range(len(dataset)))
        there = _hashes(source.path(position) for position in range(len(source)))
        _, self.rows, self.positions = np.intersect1d(
            here, there, assume_unique=True, return_indices=True
        )
        order = np.argsort(self.rows)
        self.rows, self.positions = self.rows[order], self.positions[order]

    def unmatched(self) -> Iterator[Fault]:
        """Finds samples that only one of the two has."""
        index = self._dataset.index
        for row in np.setdiff1d(np.arange(len(self._dataset)), self.rows).tolist():
            yield Fault(f"{index.path(row)} isn't in the source", key=index.key(row))
        for position in np.setdiff1d(np.arange(len(self._source)), self.positions).tolist():
            path = self._source.path(position)
            if path not in self._omitted:
                yield Fault(f"{path} is missing from the dataset")

    def compare(self, pair: int) -> _Verdict:
        """Compares one sample with its counterpart."""
        packed = self._dataset[self.rows.item(pair)]
        try:
            original = self._source[self.positions.item(pair)]
            same = self._same_image(packed, original)
        except SampleError as error:
            return _Verdict((Fault(error.message, key=packed.key),), 0)
        differences = [
            name
            for name, differs in (
                ("key", packed.key != original.key),
                ("label", self._class_of(packed) != _class_of(original, self._source.classes)),
                ("extra fields", packed.extra != original.extra),
                ("image", not same),
            )
            if differs
        ]
        nbytes = len(bytes_of(packed.image))
        if not differences:
            return _Verdict((), nbytes)
        reason = f"differs from the source in {', '.join(differences)}"
        return _Verdict((Fault(reason, key=packed.key),), nbytes)

    def _same_image(self, packed: Sample, original: Sample) -> bool:
        ours, theirs = bytes_of(packed.image), bytes_of(original.image)
        if ours == theirs:
            return True
        if not is_encoded(original.image) and is_encoded(packed.image):
            return self._theirs is not None and self._theirs.makes(packed) == digest(theirs)
        if self._ours.rewrites:
            return packed.segments is not None and np.array_equal(
                self._ours.pixels(packed), self._ours.pixels(original)
            )
        return self._ours.makes(original) == digest(ours)

    def _class_of(self, sample: Sample) -> str | None:
        return _class_of(sample, self._dataset.classes)


class _Making:
    """How a dataset's images were made."""

    def __init__(self, manifest: Manifest) -> None:
        self._policy = from_json(manifest.options["image"])
        limit = manifest.options["max_pixels"]
        self._max_pixels = limit if isinstance(limit, int) else None

    @property
    def rewrites(self) -> bool:
        """Whether it changes bytes and no pixels."""
        return isinstance(self._policy, Region)

    def pixels(self, sample: Sample) -> Pixels:
        """Decodes a sample's image."""
        return decode(sample.image, max_pixels=self._max_pixels)

    def makes(self, sample: Sample) -> bytes:
        """Gives the checksum of what it makes of a sample's image."""
        record = prepare(sample, self._policy, max_pixels=self._max_pixels, keep_bad=False)
        return record.checksum


def _class_of(sample: Sample, classes: tuple[str, ...]) -> str | None:
    return None if sample.label is None else classes[sample.label]


def _hashes(paths: Iterator[str]) -> NDArray[np.uint64]:
    hashes = (xxhash.xxh3_64_intdigest(path.encode("utf-8", "surrogateescape")) for path in paths)
    return np.fromiter(hashes, np.uint64)
