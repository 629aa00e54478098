"""What is known of the shards that are done: what a resumed run skips, and the rows of the index.

A shard has two files here, or three. `NAME.rows` is an Arrow IPC stream of the index columns, in
batches; `NAME.segments` is one of the restart segments, where the dataset is to have them.
`NAME.json` is written last and makes the shard count: its files, how far in the packing order it
reached, and what happened to the samples on the way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from packer.protocols import Record
from packer.segment_rows import SegmentRows, segment_batches
from readers.durable import write_whole
from readers.header import IMAGE_TYPES
from readers.index import COLUMNS, SCHEMA
from readers.manifest import File, Shard, Skipped

_BATCH_ROWS = 4096
_SEGMENTS = ".segments"
_TYPE_NUMBERS = {name: number for number, name in enumerate(IMAGE_TYPES)}


@dataclass(slots=True)
class Tally:
    """What happened to a run of samples."""

    types: dict[str, int] = field(default_factory=dict)
    decoders: dict[str, int] = field(default_factory=dict)
    ledger: list[Skipped] = field(default_factory=list)

    def count(self, record: Record) -> None:
        """Counts a record by type and decoder."""
        self.types[record.type] = self.types.get(record.type, 0) + 1
        if record.decoder is not None:
            self.decoders[record.decoder] = self.decoders.get(record.decoder, 0) + 1

    def add(self, other: Tally) -> None:
        """Adds what happened to a later run of samples."""
        for mine, theirs in ((self.types, other.types), (self.decoders, other.decoders)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        self.ledger += other.ledger


@dataclass(frozen=True, slots=True)
class DoneShard:
    """A finished shard."""

    shard: Shard
    position: int
    """Position in the packing order at which the next shard begins."""
    stamps: str
    """Checksum of the stamps of its samples, those that were skipped included."""
    tally: Tally


class Rows:
    """The index rows of the shard that is being written, spooled to its `.rows` file."""

    def __init__(self, path: Path, shard: int, segments: SegmentRows | None) -> None:
        self._path = path
        self._segments = segments
        self._shard = shard
        self._columns = _empty_columns()
        self._stream = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_stream(self._stream, SCHEMA)
        self.count = 0

    def append(self, record: Record) -> None:
        """Adds the row of a record; where it lies is filled in by `finish`."""
        columns = self._columns
        columns["key"].append(record.key)
        columns["path"].append(record.path.encode("utf-8", "surrogateescape"))
        columns["label"].append(-1 if record.label is None else record.label)
        columns["shard"].append(self._shard)
        columns["offset"].append(0)
        columns["length"].append(len(record.image))
        columns["height"].append(record.height)
        columns["width"].append(record.width)
        columns["orientation"].append(record.orientation)
        columns["type"].append(_TYPE_NUMBERS[record.type])
        columns["checksum"].append(record.checksum)
        columns["extra"].append(json.dumps(dict(record.extra)) if record.extra else "")
        self.count += 1
        if self._segments is not None:
            self._segments.append(record.segments)
        if len(columns["key"]) == _BATCH_ROWS:
            self._flush()

    def finish(self, offsets: NDArray[np.int64]) -> None:
        """Completes the files; where the images lie goes into one beside them."""
        if self._columns["key"]:
            self._flush()
        self._writer.close()
        self._stream.close()
        np.save(self._path.with_suffix(".offsets.npy"), offsets)
        for path in (self._path, self._path.with_suffix(".offsets.npy")):
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
        if self._segments is not None:
            self._segments.finish()

    def abandon(self) -> None:
        """Closes the files, incomplete or not."""
        self._stream.close()
        if self._segments is not None:
            self._segments.abandon()

    def _flush(self) -> None:
        arrays = [pa.array(self._columns[name], kind) for name, kind in COLUMNS]
        self._writer.write_batch(pa.record_batch(arrays, schema=SCHEMA))
        self._columns = _empty_columns()


def _empty_columns() -> dict[str, list[object]]:
    return {name: [] for name, _ in COLUMNS}


class Journal:
    """The finished shards of a workspace, in order."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def rows(self, number: int, *, segments: bool) -> Rows:
        """Begins the rows of a shard, with restart segments or without."""
        path = self._rows_path(number)
        beside = SegmentRows(path.with_suffix(_SEGMENTS)) if segments else None
        return Rows(path, number, beside)

    def commit(self, number: int, done: DoneShard) -> None:
        """Makes a shard count, whose files and rows are complete."""
        path = self._directory / f"{shard_name(number)}.json"
        write_whole(path, json.dumps(asdict(done)).encode())

    def done(self) -> Iterator[DoneShard]:
        """Gives the finished shards from the first one on."""
        number = 0
        while (path := self._directory / f"{shard_name(number)}.json").exists():
            raw = json.loads(path.read_bytes())
            tally = raw["tally"]
            yield DoneShard(
                Shard(
                    raw["shard"]["samples"],
                    tuple(File(**file) for file in raw["shard"]["files"]),
                ),
                raw["position"],
                raw["stamps"],
                Tally(
                    tally["types"],
                    tally["decoders"],
                    [Skipped(**item) for item in tally["ledger"]],
                ),
            )
            number += 1

    def cut(self, number: int) -> None:
        """Forgets the shards from that one on."""
        for path in sorted(self._directory.glob("*.json"), reverse=True)[: -number or None]:
            path.unlink()

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        """Gives the rows of a finished shard, with their places filled in."""
        path = self._rows_path(number)
        offsets = np.load(path.with_suffix(".offsets.npy"), mmap_mode="r")
        at = SCHEMA.get_field_index("offset")
        start = 0
        with pa.memory_map(str(path)) as file:
            for batch in pa.ipc.open_stream(file):
                end = start + batch.num_rows
                placed = pa.array(np.asarray(offsets[start:end]), pa.int64())
                columns = batch.columns
                columns[at] = placed
                yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
                start = end

    def segments(self, number: int) -> Iterator[pa.RecordBatch]:
        """Gives the restart segments of a finished shard's samples."""
        return segment_batches(self._rows_path(number).with_suffix(_SEGMENTS))

    def _rows_path(self, number: int) -> Path:
        return self._directory / f"{shard_name(number)}.rows"


def shard_name(number: int) -> str:
    """Names a shard, without suffix."""
    return f"shard-{number:06d}"
