"""Makes a dataset of a full cache: the same, byte for byte, as packing makes of its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readers.checksum import BLOCK_SIZE, digest, file_checksum
from readers.dataset import Dataset
from readers.durable import sync_directory, write_whole
from readers.errors import OptionError, StorageError
from readers.fitting import fitted, libraries
from readers.header import IMAGE_TYPES
from readers.index import COLUMNS, SCHEMA
from readers.layout import npy as layout
from readers.manifest import INDEX, MANIFEST, VERSION, File, Manifest, Shard, Skipped
from readers.pixel_cache.store import IDENTITY, STATES, Store, shard_name
from readers.plan import fingerprint
from readers.registry import FORMATS
from readers.sample import JsonValue, as_rgb
from readers.version import __version__
from readers.yuv import OPENCV, opencv_version

_FORMAT = FORMATS["npy"]


def publish(store: Store, reader: Dataset, path: Path, options: Mapping[str, JsonValue]) -> None:
    """Adds index and manifest to the pixels and gives the dataset its name.

    Another process may do the same meanwhile: both write the same, and one gives the name.

    Args:
        store: The cache.
        reader: The dataset whose images were decoded.
        path: Where the dataset is to stand.
        options: Those that packing would record.

    Raises:
        OptionError: Pixels are missing.
        StorageError: The storage refuses.
    """
    _check_whole(store, len(reader))
    try:
        store.sync()
        shards = tuple(
            Shard(len(rows), (_file(shard_name(number), store.shard(number)), *companions))
            for number, rows in enumerate(store.places.shards())
            for companions in [_companions(store, reader, number, rows)]
        )
        index = _write(store.path / INDEX, _index(store, reader))
        manifest = _manifest(store, reader, options, shards, index)
        write_whole(store.path / MANIFEST, manifest.to_json().encode())
        store.path.rename(path)
        for name in (IDENTITY, STATES):
            (path / name).unlink()
        sync_directory(path.parent)
    except OSError as error:
        if not (path / MANIFEST).exists():
            raise StorageError(
                f"{error.filename or path}: {error.strerror}", path=str(path)
            ) from error


def _check_whole(store: Store, samples: int) -> None:
    missing = samples - store.count()
    if not missing:
        missing = sum(store.get(row) is None for row in range(samples))
    if missing:
        raise OptionError(
            f"{missing} of {samples} samples have no pixels in {store.path} yet: ask for every "
            "sample once, under no limit, or let 'packer convert' make the dataset"
        )


def _companions(store: Store, reader: Dataset, number: int, rows: range) -> list[File]:
    arrays: dict[str, NDArray[np.int64] | NDArray[np.int32]] = {}
    if store.places.shape is None:
        sizes = store.places.sizes(rows)
        arrays["offsets"] = store.places.ends(rows)
        arrays["shapes"] = np.insert(sizes, 2, 3, axis=1)
    if reader.classes:
        arrays["labels"] = reader.labels[rows.start : rows.stop]
    stem = shard_name(number).removesuffix(layout.SUFFIX)
    files = []
    for field, values in arrays.items():
        kind = f"<i{values.itemsize}"
        content = layout.header(kind, values.shape) + values.astype(kind).tobytes()
        files.append(_write(store.path / f"{stem}.{field}{layout.SUFFIX}", content))
    return files


def _index(store: Store, reader: Dataset) -> bytes:
    """Renders the index: the reader's, with the places of the pixels."""
    places, samples = store.places, len(reader)
    starts = np.concatenate([places.ends(rows)[:-1] for rows in places.shards()])
    sizes = places.sizes(range(samples))
    columns = {
        "shard": np.arange(samples) // places.shard_samples,
        "offset": starts + layout.HEADER_BYTES,
        "length": sizes[:, 0].astype(np.int64) * sizes[:, 1] * 3,
        "height": sizes[:, 0],
        "width": sizes[:, 1],
        "orientation": np.ones(samples, np.int8),
        "type": np.full(samples, IMAGE_TYPES.index("pixels")),
    }
    arrays = []
    for name, kind in COLUMNS:
        if name in columns:
            arrays.append(pa.array(columns[name]).cast(kind))
        elif name == "checksum":
            data = pa.py_buffer(store.checksums())
            arrays.append(pa.Array.from_buffers(kind, samples, [None, data]))
        else:
            arrays.append(reader.index.column(name))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, SCHEMA) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _manifest(
    store: Store,
    reader: Dataset,
    options: Mapping[str, JsonValue],
    shards: tuple[Shard, ...],
    index: File,
) -> Manifest:
    source, used = reader.manifest, libraries()
    if source.color == "yuv420":
        used = {OPENCV: opencv_version()} | used
    decoders = Counter(store.decoders().tolist())
    decoders.pop("", None)
    return Manifest(
        format=_FORMAT.name,
        version=_FORMAT.version,
        reader_version=VERSION,
        packer_version=__version__,
        plan=fingerprint(_FORMAT, source.fingerprint, options, used),
        samples=len(reader),
        classes=source.classes,
        fields=source.fields,
        pixels=True,
        shape=store.places.shape,
        shards=shards,
        index=index,
        types={"pixels": len(reader)},
        decoders=dict(sorted(decoders.items())),
        libraries=used,
        options=dict(options) | {"on_error": "stop"},
        source={
            "kind": "dataset",
            "fingerprint": source.fingerprint,
            "samples": len(reader),
            "litter": 0,
        },
        ledger=source.not_packed + _notes(store, reader),
    )


def _notes(store: Store, reader: Dataset) -> tuple[Skipped, ...]:
    """Decodes once more the JPEGs that simplejpeg refused, to tell why."""
    jpeg = reader.index.types == IMAGE_TYPES.index("jpeg")
    found = []
    for row in np.flatnonzero(jpeg & (store.decoders() == "pillow")).tolist():
        sample = reader[row]
        note = fitted(as_rgb(sample.image), None, "crop", max_pixels=None).note
        if note is not None:
            found.append(Skipped(sample.path, "noted", note))
    return tuple(found)


def _file(name: str, content: memoryview) -> File:
    """Checksums a file of the dataset."""
    blocks = (content[start : start + BLOCK_SIZE] for start in range(0, len(content), BLOCK_SIZE))
    return File(name, len(content), file_checksum(map(digest, blocks)))


def _write(path: Path, content: bytes) -> File:
    write_whole(path, content)
    return _file(path.name, memoryview(content))
