"""The formats: one table, alphabetical, of names only, so nothing loads until it is asked for."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from types import MappingProxyType

from readers.errors import MissingDependencyError, UnknownFormatError


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatEntry:
    """Where a format's parts live and what they need."""

    name: str
    summary: str
    """When to use it, in one line."""
    layout: str
    """Module whose docstring is the specification of the bytes."""
    writer: str
    """`module:Class` of the `packer.protocols.ShardWriter`."""
    version: int
    """Version of the layout that is written, and the newest that is read."""
    encoded: bool
    """Whether it holds encoded images."""
    pixels: bool
    """Whether it holds decoded ones."""
    stock: str
    """The few lines that read a shard without this library; `shard` is its path."""
    shard_size: int | None = None
    """Bytes after which a new shard begins unless told otherwise; None for any number."""
    shard_samples: int = 1_000_000
    """Samples after which a new shard begins unless told otherwise: what a writer must remember of
    each sample until its shard ends, takes memory."""
    extra: str | None = None
    """Extra of the distribution that installs what `needs` names."""
    needs: tuple[str, ...] = ()
    """Import names of the libraries that the writer needs; the reader needs none."""
    shapes_bytes: tuple[str, ...] = ()
    """Those of them whose version decides what the bytes are."""


_ENTRIES = (
    FormatEntry(
        name="arrow",
        summary="Arrow IPC files as Hugging Face datasets has them: memory-mapped, typed columns",
        layout="readers.layout.arrow",
        writer="packer.formats.arrow:ArrowShardWriter",
        version=1,
        encoded=True,
        pixels=False,
        stock="""\
import pyarrow
file = pyarrow.ipc.open_file(pyarrow.memory_map(shard))
image = file.get_batch(0).column("image")[0]["bytes"].as_py()
""",
    ),
    FormatEntry(
        name="hdf5",
        summary="one file for tools of the sciences; files or pixels, both contiguous",
        layout="readers.layout.hdf5",
        writer="packer.formats.hdf5:Hdf5ShardWriter",
        version=1,
        encoded=True,
        pixels=True,
        extra="hdf5",
        needs=("h5py",),
        shapes_bytes=("h5py",),
        stock="""\
import h5py
with h5py.File(shard, "r") as file:
    if "offsets" in file:
        start, end = file["offsets"][0:2]
        image = file["image"][start:end].tobytes()
    else:
        image = file["image"][0]
""",
    ),
    FormatEntry(
        name="lmdb",
        summary="one memory-mapped file, read by key; the safe choice on a local disk",
        layout="readers.layout.lmdb",
        writer="packer.formats.lmdb:LmdbShardWriter",
        version=1,
        encoded=True,
        pixels=False,
        extra="lmdb",
        needs=("lmdb",),
        stock="""\
import lmdb
environment = lmdb.open(shard, subdir=False, readonly=True, lock=False, max_dbs=3)
images = environment.open_db(b"image")
with environment.begin(db=images) as transaction:
    key, image = next(iter(transaction.cursor()))
""",
    ),
    FormatEntry(
        name="npy",
        summary="decoded pixels, memory-mapped: no decoding while training, much more disk",
        layout="readers.layout.npy",
        writer="packer.formats.npy:NpyShardWriter",
        version=1,
        encoded=False,
        pixels=True,
        stock="""\
import numpy
pixels = numpy.load(shard, mmap_mode="r")
if pixels.ndim == 1:
    offsets = numpy.load(shard.removesuffix("npy") + "offsets.npy")
    shapes = numpy.load(shard.removesuffix("npy") + "shapes.npy")
    image = pixels[offsets[0] : offsets[1]].reshape(shapes[0])
else:
    image = pixels[0]
""",
    ),
    FormatEntry(
        name="parquet",
        summary="Parquet as Hugging Face datasets has it, for its hub and for tools of tables",
        layout="readers.layout.parquet",
        writer="packer.formats.parquet:ParquetShardWriter",
        version=1,
        encoded=True,
        pixels=False,
        shard_size=1_000_000_000,
        stock="""\
import pyarrow.parquet
file = pyarrow.parquet.ParquetFile(shard)
image = file.read_row_group(0, columns=["image"])["image"][0]["bytes"].as_py()
""",
    ),
    FormatEntry(
        name="tfrecord",
        summary="tf.train.Example records, with checksums and index files; for TensorFlow and DALI",
        layout="readers.layout.tfrecord",
        writer="packer.formats.tfrecord:TfrecordShardWriter",
        version=1,
        encoded=True,
        pixels=False,
        shard_size=1_000_000_000,
        extra="tfrecord",
        needs=("crc32c",),
        stock="""\
import tfrecord
examples = tfrecord.tfrecord_loader(shard, None, {"image/encoded": "byte"})
image = next(iter(examples))["image/encoded"]
""",
    ),
    FormatEntry(
        name="webdataset",
        summary="tar shards, streamed or read at random; the choice for networks and buckets",
        layout="readers.layout.webdataset",
        writer="packer.formats.webdataset:WebDatasetShardWriter",
        version=1,
        encoded=True,
        pixels=False,
        shard_size=1_000_000_000,
        stock="""\
import webdataset
samples = webdataset.WebDataset(shard, shardshuffle=False)
sample = next(iter(samples))
image = next(sample[field] for field in sample if field not in ("__key__", "__url__", "cls"))
""",
    ),
)

FORMATS = MappingProxyType({entry.name: entry for entry in _ENTRIES})


def format_entry(name: str) -> FormatEntry:
    """Finds a format by name.

    Raises:
        UnknownFormatError: There is none of that name.
    """
    try:
        return FORMATS[name]
    except KeyError:
        close = difflib.get_close_matches(name, FORMATS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        known = ", ".join(FORMATS)
        raise UnknownFormatError(f"unknown format {name!r}{hint} (known: {known})") from None


def load(entry: FormatEntry, target: str) -> object:
    """Imports `module:Name` of a format.

    Raises:
        MissingDependencyError: A library that the format needs isn't installed.
    """
    module, name = target.split(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name not in entry.needs:
            raise
        raise MissingDependencyError(
            f"format {entry.name!r} needs {error.name}: pip install 'dataset-packer[{entry.extra}]'"
        ) from error
