"""Packs a source into a dataset: source, plan, records, shards, index, manifest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from packer.arrow_file import write_arrow
from packer.image_policy import Decode, ImagePolicy, Keep, Region, gives_pixels
from packer.journal import DoneShard, Journal, Rows, Tally, shard_name
from packer.options import ConvertOptions
from packer.pipeline import Outcome, Pipeline
from packer.plan import libraries, packing_order
from packer.progress import Meter, OnProgress
from packer.protocols import Contents, PackSource, Record, ShardWriter
from packer.recoding import load_recode
from packer.tryout import try_out
from packer.workspace import Workspace
from readers.checksum import digest_parts
from readers.durable import NO_ROOM, write_whole
from readers.errors import OptionError, PackError, SourceError, StorageError, StorageFullError
from readers.index import SCHEMA as INDEX_SCHEMA
from readers.manifest import INDEX, MANIFEST, SEGMENTS, VERSION, File, Manifest, Shard
from readers.opening import open_dataset
from readers.plan import fingerprint
from readers.registry import FORMATS, FormatEntry, format_entry, load
from readers.segments import SCHEMA as SEGMENTS_SCHEMA
from readers.version import __version__
from readers.yuv import stored_shape


def convert(
    source: PackSource,
    destination: Path,
    *,
    format: str,
    options: ConvertOptions | None = None,
    on_progress: OnProgress | None = None,
) -> Manifest:
    """Packs a source into a dataset.

    The same source and options give the same bytes, whatever the number of workers and however
    often the run was interrupted. A run that finds its own unfinished work goes on with it.

    Args:
        source: What is packed, see `packer.sources.opening.open_source`.
        destination: Directory that is made; beside it stands `NAME.partial` meanwhile.
        format: One of `readers.registry.FORMATS`.
        options: How.
        on_progress: Called from this thread, some ten times a second.

    Returns:
        The manifest of the finished dataset.

    Raises:
        PackError: See the tree in `readers.errors` for what it may be.
    """
    options = options or ConvertOptions()
    entry = format_entry(format)
    writer = cast("Callable[[Path, str, Contents], ShardWriter]", load(entry, entry.writer))
    policy = choose_policy(source, entry, options)
    if not len(source):
        raise SourceError("the source holds no files to pack")
    workspace = Workspace(destination.absolute())
    run = _Run(
        source=source,
        entry=entry,
        policy=policy,
        options=options,
        writer=writer,
        workspace=workspace,
        meter=Meter(on_progress),
    )
    try:
        try_out(workspace.path)
        workspace.begin(
            run.plan, options.on_error, resume=options.resume, overwrite=options.overwrite
        )
        if not workspace.is_complete():
            run.pack()
            run.write_manifest()
        workspace.publish(overwrite=options.overwrite)
    except OSError as error:
        with suppress(OSError):
            shutil.rmtree(workspace.open)
        workspace.release()
        if isinstance(error, PackError):
            raise
        raise _storage_error(error, workspace.path, run.bytes_to_come()) from error
    except BaseException:
        workspace.release()
        raise
    with open_dataset(destination) as dataset:
        return dataset.manifest


def plan_of(source: PackSource, *, format: str, options: ConvertOptions) -> str:
    """Gives the fingerprint of a conversion, which the dataset's manifest will have.

    Raises:
        OptionError: The format can't hold what the policy makes of the source.
    """
    entry = format_entry(format)
    policy = choose_policy(source, entry, options)
    return fingerprint(
        entry,
        source.fingerprint,
        options.plan(entry, policy),
        libraries(entry, policy, source.color),
    )


def choose_policy(source: PackSource, entry: FormatEntry, options: ConvertOptions) -> ImagePolicy:
    """Settles the image policy: the one asked for, or what the format calls for.

    Raises:
        OptionError: The format can't hold what the policy makes of the source.
        MissingDependencyError: A library that the policy needs isn't installed.
    """
    policy = options.image
    if policy is None:
        policy = Keep() if entry.encoded or source.pixels else Decode()
    pixels = gives_pixels(policy) or (isinstance(policy, Keep) and source.pixels)
    if pixels and not entry.pixels:
        raise OptionError(
            f"format {entry.name} holds encoded images, not pixels: use --image keep, resize or "
            f"reencode, or --format {' or '.join(n for n, e in FORMATS.items() if e.pixels)}"
            if not source.pixels
            else f"the source holds pixels and format {entry.name} holds encoded images: use "
            "--image reencode or resize"
        )
    if not pixels and not entry.encoded:
        raise OptionError(
            f"format {entry.name} holds pixels: use --image decode"
            + (", or --format lmdb, webdataset or hdf5" if isinstance(policy, Region) else "")
        )
    if isinstance(policy, Region):
        if source.pixels:
            raise OptionError("--image region rewrites JPEG files, and the source holds pixels")
        load_recode()
    if isinstance(policy, Decode) and options.on_error == "keep":
        raise OptionError(
            "on_error 'keep' stores a bad file as it is, which a decoded dataset can't: choose "
            "'skip' or 'stop'"
        )
    return policy


class _Run:
    """One conversion at work."""

    def __init__(
        self,
        *,
        source: PackSource,
        entry: FormatEntry,
        policy: ImagePolicy,
        options: ConvertOptions,
        writer: Callable[[Path, str, Contents], ShardWriter],
        workspace: Workspace,
        meter: Meter,
    ) -> None:
        self._source = source
        self._entry = entry
        self._policy = policy
        self._options = options
        self._writer = writer
        self._workspace = workspace
        self._meter = meter
        self._journal = Journal(workspace.journal)
        self._done: list[DoneShard] = []
        self._shard: _OpenShard | None = None
        self._tally = Tally()
        self._stamps = xxhash.xxh3_128()
        self._shape = _shape(policy, source)
        self._color = policy.color if isinstance(policy, Decode) else source.color
        self._contents = Contents(
            pixels=gives_pixels(policy) or (source.pixels and isinstance(policy, Keep)),
            shape=stored_shape(self._shape, self._color),
            classes=source.classes,
            fields=source.fields,
        )
        self._has_segments = isinstance(policy, Region) or (
            source.segments and isinstance(policy, Keep)
        )
        self.plan = plan_of(source, format=entry.name, options=options)

    def pack(self) -> None:
        """Writes the shards that aren't done yet."""
        order = packing_order(len(self._source), self._options.shuffle)
        self._done = self._still_good(order)
        position = self._done[-1].position if self._done else 0
        self._meter.begin("pack", len(order), position)
        try:
            for outcome in Pipeline(self._source, self._policy, self._options).run(
                order[position:]
            ):
                if self._shard is not None and self._is_full(self._shard, outcome):
                    self._commit(self._shard, position)
                self._add(outcome)
                position += 1
                self._meter.count(1, outcome.nbytes)
            if self._shard is not None:
                self._commit(self._shard, position)
        finally:
            if self._shard is not None:
                self._shard.abandon()

    def bytes_to_come(self) -> int | None:
        """Estimates what is still to be written, from what was; None if nothing was."""
        done = sum(done.shard.samples for done in self._done)
        if self._shard is not None and self._shard.samples:
            each = self._shard.size // self._shard.samples
        elif done:
            each = sum(done.shard.bytes for done in self._done) // done
        else:
            return None
        return each * (len(self._source) - done)

    def write_manifest(self) -> None:
        """Writes the index and, last, the manifest."""
        samples = sum(done.shard.samples for done in self._done)
        tally = Tally()
        tally.ledger += self._source.report.notes
        for part in (*(done.tally for done in self._done), self._tally):
            tally.add(part)
        if not samples:
            reasons = "; ".join(f"{item.path}: {item.reason}" for item in tally.ledger[:3])
            raise SourceError(f"none of {len(self._source)} files can be packed ({reasons})")
        self._meter.begin("index", samples)
        index = write_arrow(self._workspace.open / INDEX, INDEX_SCHEMA, self._rows)
        segments = None
        if self._has_segments:
            path = self._workspace.open / SEGMENTS
            segments = write_arrow(path, SEGMENTS_SCHEMA, self._segments)
        self._workspace.place(index, *(() if segments is None else (segments,)))
        manifest = Manifest(
            format=self._entry.name,
            version=self._entry.version,
            reader_version=VERSION,
            packer_version=__version__,
            plan=self.plan,
            samples=samples,
            classes=self._source.classes,
            fields=dict(self._source.fields),
            pixels=self._contents.pixels,
            shape=self._shape,
            shards=tuple(done.shard for done in self._done),
            index=index,
            types=dict(sorted(tally.types.items())),
            decoders=dict(sorted(tally.decoders.items())),
            libraries=libraries(self._entry, self._policy, self._source.color),
            options=self._options.plan(self._entry, self._policy)
            | {"on_error": self._options.on_error},
            source={
                "kind": self._source.kind,
                "fingerprint": self._source.fingerprint,
                "samples": len(self._source),
                "litter": self._source.report.litter,
            },
            ledger=tuple(tally.ledger),
            color=self._color if self._contents.pixels else "rgb",
            segments=segments,
        )
        write_whole(self._workspace.dataset / MANIFEST, manifest.to_json().encode())

    def _still_good(self, order: NDArray[np.int64]) -> list[DoneShard]:
        """Finds the finished shards that are there, of files that haven't changed since."""
        good: list[DoneShard] = []
        begin = 0
        for done in self._journal.done():
            stamps = map(self._source.stamp, order[begin : done.position].tolist())
            if not self._workspace.holds(done.shard.files):
                break
            if digest_parts(stamps).hex() != done.stamps:
                break
            good.append(done)
            begin = done.position
        self._journal.cut(len(good))
        self._workspace.prune(file for done in good for file in done.shard.files)
        return good

    def _is_full(self, shard: _OpenShard, outcome: Outcome) -> bool:
        if outcome.record is None:
            return False
        limit, samples = self._options.shard_limits(self._entry)
        if shard.samples >= samples:
            return True
        return limit is not None and shard.size + len(outcome.record.image) > limit

    def _add(self, outcome: Outcome) -> None:
        self._stamps.update(outcome.stamp)
        if outcome.remark is not None:
            self._tally.ledger.append(outcome.remark)
        if outcome.record is not None:
            self._tally.count(outcome.record)
            if self._shard is None:
                number = len(self._done)
                name = shard_name(number)
                writer = self._writer(self._workspace.open, name, self._contents)
                rows = self._journal.rows(number, segments=self._has_segments)
                self._shard = _OpenShard(writer, rows)
            self._shard.add(outcome.record)

    def _commit(self, shard: _OpenShard, position: int) -> None:
        files = shard.finish()
        self._shard = None
        self._workspace.place(*files)
        stamps = self._stamps.hexdigest()
        done = DoneShard(Shard(shard.samples, files), position, stamps, self._tally)
        self._journal.commit(len(self._done), done)
        self._done.append(done)
        self._tally = Tally()
        self._stamps.reset()

    def _rows(self) -> Iterator[pa.RecordBatch]:
        for number in range(len(self._done)):
            yield from self._journal.batches(number)

    def _segments(self) -> Iterator[pa.RecordBatch]:
        for number in range(len(self._done)):
            yield from self._journal.segments(number)


class _OpenShard:
    """The shard that is being written, with its rows."""

    def __init__(self, writer: ShardWriter, rows: Rows) -> None:
        self._writer = writer
        self._rows = rows

    @property
    def samples(self) -> int:
        return self._rows.count

    @property
    def size(self) -> int:
        return self._writer.size

    def add(self, record: Record) -> None:
        self._writer.write(record)
        self._rows.append(record)

    def finish(self) -> tuple[File, ...]:
        files, offsets = self._writer.finish()
        self._rows.finish(offsets)
        return files

    def abandon(self) -> None:
        self._writer.abandon()
        self._rows.abandon()


def _shape(policy: ImagePolicy, source: PackSource) -> tuple[int, int, int] | None:
    if isinstance(policy, Decode):
        return None if policy.size is None else (*policy.size, 3)
    return source.shape if isinstance(policy, Keep) else None


def _storage_error(
    error: OSError, path: Path, needed: int | None
) -> StorageError | StorageFullError:
    if error.errno not in NO_ROOM:
        return StorageError(f"{error.filename or path}: {error.strerror or error}", path=str(path))
    room = os.statvfs(path)
    free = room.f_bavail * room.f_frsize
    wanted = f"more than {free}" if needed is None or needed <= free else f"some {needed}"
    return StorageFullError(
        f"no room is left for {path} ({os.strerror(error.errno or 0)}): {wanted} bytes are needed, "
        f"{free} are free; what is finished is kept, make room and run the same command again",
        path=str(path),
    )
