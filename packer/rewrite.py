"""Finds where a shard differs from what its writer would write of the same samples."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import cast

import numpy as np

from packer.protocols import Contents, Record, ShardWriter
from readers.checksum import BLOCK_SIZE
from readers.dataset import Dataset
from readers.errors import PackError
from readers.header import IMAGE_TYPES
from readers.manifest import File
from readers.registry import format_entry, load
from readers.sample import bytes_of
from readers.yuv import stored_shape

_ROOM = 2
"""How many times the shard's size must be free to write it anew."""


def first_difference(dataset: Dataset, file: File) -> int | None:
    """Writes the shard anew into a temporary directory and compares.

    Args:
        dataset: The dataset; its index and the images in the shard must be whole.
        file: The damaged file.

    Returns:
        Offset of the first byte that differs; None where that can't be found out: the file belongs
        to no shard, the format's library is missing, another version wrote it, or there is no room.
    """
    manifest = dataset.manifest
    numbers = [n for n, shard in enumerate(manifest.shards) if file in shard.files]
    if not numbers:
        return None
    entry = format_entry(manifest.format)
    contents = Contents(
        pixels=manifest.pixels,
        shape=stored_shape(manifest.shape, manifest.color),
        classes=manifest.classes,
        fields=manifest.fields,
    )
    try:
        make = cast("type[ShardWriter]", load(entry, entry.writer))
        with tempfile.TemporaryDirectory() as directory:
            room = os.statvfs(directory)
            if room.f_bavail * room.f_frsize < _ROOM * manifest.shards[numbers[0]].bytes:
                return None
            name = manifest.shards[numbers[0]].name.partition(".")[0]
            writer = make(Path(directory), name, contents)
            try:
                for row in np.flatnonzero(dataset.index.shards == numbers[0]).tolist():
                    writer.write(_record(dataset, row))
                written, _ = writer.finish()
            except BaseException:
                writer.abandon()
                raise
            if file not in written:
                return None
            return _compare(Path(directory) / file.name, dataset.root / file.name)
    except (PackError, OSError):
        return None


def _record(dataset: Dataset, row: int) -> Record:
    sample, index = dataset[row], dataset.index
    return Record(
        key=sample.key,
        path=sample.path,
        label=sample.label,
        extra=sample.extra,
        image=bytes_of(sample.image),
        type=IMAGE_TYPES[index.types.item(row)],
        height=index.heights.item(row),
        width=index.widths.item(row),
        orientation=index.orientations.item(row),
        checksum=index.checksums[row].tobytes(),
    )


def _compare(one: Path, other: Path) -> int | None:
    with one.open("rb") as first, other.open("rb") as second:
        start = 0
        while block := first.read(BLOCK_SIZE):
            against = second.read(BLOCK_SIZE)
            if block != against:
                mine, theirs = (np.frombuffer(part, np.uint8) for part in (block, against))
                return start + int(np.argmax(mine != theirs))
            start += len(block)
    return None
