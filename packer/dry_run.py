"""Predicts what a conversion will take, from some hundred samples."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from packer.convert import choose_policy
from packer.options import ConvertOptions
from packer.pipeline import Pipeline
from packer.protocols import PackSource
from readers.errors import SourceError
from readers.registry import format_entry

_TRIED = 256
_INDEX_BYTES = 120
"""Bytes of an index row beside its texts."""
_OFFSET_BYTES = 8
"""Bytes that tell where the restart segments of an image begin."""
_CONTAINER_BYTES = 2048
"""Bytes that a container adds to an image at most, on average: tar headers, pages, offsets."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a conversion will take."""

    samples: int
    """Samples that will be packed."""
    refused: int
    """Samples that can't be used."""
    nbytes: int
    """Size of the dataset."""
    source_nbytes: int
    """Bytes of the images in the source."""
    seconds: float
    peak_disk: int
    """Most bytes that it takes on the destination's storage at one time."""
    free_disk: int
    """Bytes that are free there."""

    @property
    def fits(self) -> bool:
        """Whether there is room."""
        return self.peak_disk <= self.free_disk


def dry_run(
    source: PackSource, destination: Path, *, format: str, options: ConvertOptions
) -> Prediction:
    """Prepares evenly spread samples, writes nothing, and predicts the rest.

    Args:
        source: What would be packed.
        destination: Where the dataset would stand.
        format: Name of the format.
        options: How; `on_error` is taken for `skip`.

    Raises:
        PackError: The conversion would be refused.
    """
    policy = choose_policy(source, format_entry(format), options)
    total = len(source)
    if not total:
        raise SourceError("the source holds no files to pack")
    positions = np.unique(np.linspace(0, total - 1, min(total, _TRIED)).astype(np.int64))
    began = time.monotonic()
    pipeline = Pipeline(source, policy, replace(options, on_error="skip"))
    outcomes = list(pipeline.run(positions))
    seconds = time.monotonic() - began
    records = [outcome.record for outcome in outcomes if outcome.record is not None]
    share = total / len(positions)
    texts = sum(2 * len(record.path) for record in records)
    images = sum(len(record.image) for record in records)
    samples = round(len(records) * share)
    lists = [record.segments for record in records if record.segments is not None]
    segments = sum(one.nbytes for one in lists) + len(lists) * _OFFSET_BYTES
    index = round((texts + segments) * share) + samples * _INDEX_BYTES
    nbytes = round(images * share) + samples * _CONTAINER_BYTES + index
    return Prediction(
        samples=samples,
        refused=total - samples,
        nbytes=nbytes,
        source_nbytes=round(sum(outcome.nbytes for outcome in outcomes) * share),
        seconds=seconds * share,
        peak_disk=nbytes + 2 * index,
        free_disk=_free(destination),
    )


def _free(destination: Path) -> int:
    place = destination.absolute()
    while not place.exists():
        place = place.parent
    status = os.statvfs(place)
    return status.f_bavail * status.f_frsize
