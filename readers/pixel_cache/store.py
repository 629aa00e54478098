"""The files of a cache that fills up, shared by all processes that use it.

::

    cache.json           what it is a cache of
    shard-000000.npy     the pixels, each at its place; what isn't there yet is a hole
    states               17 bytes a sample: XXH3-128 of its pixels, and how they were made (1 from
                         pixels, 2 by simplejpeg, 3 by Pillow; 0: not there yet)

Pixels are written before their state. What a crash left half done fails its checksum and is made
again. Two processes that make the same pixels write the same bytes to the same place.
"""

from __future__ import annotations

import os
import secrets
import shutil
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readers.checksum import digest
from readers.durable import NO_ROOM, sync_directory, write_whole
from readers.errors import OptionError, PackError, StorageError, StorageFullError
from readers.index import CHECKSUM_BYTES
from readers.layout import npy as layout
from readers.pixel_cache.places import Places
from readers.pixel_cache.shared_file import SharedFile
from readers.sample import Pixels

IDENTITY = "cache.json"
STATES = "states"

_STATE_BYTES = CHECKSUM_BYTES + 1
_DECODERS = (None, "simplejpeg", "pillow")


class Store:
    """What a process has open of a cache.

    Attributes:
        path: The directory.
        places: Where the pixels belong.
    """

    def __init__(self, path: Path, places: Places, identity: bytes) -> None:
        """Opens the files, and makes them if they aren't there.

        Args:
            path: The directory.
            places: Where the pixels belong.
            identity: Text that says what it is a cache of.

        Raises:
            OptionError: The directory holds a cache of something else.
            StorageFullError: There is no room for all pixels.
            StorageError: The storage refuses.
        """
        self.path = path
        self.places = places
        self._checked = bytearray(-(-places.samples // 8))
        try:
            if not path.exists():
                _make(path, places, identity)
            if (path / IDENTITY).read_bytes() != identity:
                raise OptionError(
                    f"{path} is a cache of another dataset, of other options or by other versions "
                    f"of Pillow and simplejpeg (see its {IDENTITY}): choose another path, or "
                    "remove it"
                )
            self._writable = os.access(path / STATES, os.W_OK)
            self._shards = [
                SharedFile(path / shard_name(number), size, writable=self._writable)
                for number, size in enumerate(_shard_sizes(places))
            ]
            size = places.samples * _STATE_BYTES
            self._states_file = SharedFile(path / STATES, size, writable=self._writable)
        except OSError as error:
            raise _storage_error(error, path) from error
        states = np.frombuffer(self._states_file.view, np.uint8)
        self._states = states.reshape(places.samples, _STATE_BYTES)

    def get(self, row: int) -> Pixels | None:
        """Gives the pixels of a sample: a view of the file; None if they aren't there, whole."""
        if row >= self.places.samples:
            return None
        *checksum, made = self._states[row].tobytes()
        if not made:
            return None
        place = self.places[row]
        file = self._shards[place.shard]
        flat = np.frombuffer(file.view, np.uint8, place.length, place.offset)
        if not self._checked[row >> 3] >> (row & 7) & 1:
            if digest(flat.data) != bytes(checksum):
                return None
            self._checked[row >> 3] |= 1 << (row & 7)
        return flat.reshape(place.height, place.width, 3)

    def put(self, row: int, pixels: Pixels, decoder: str | None) -> None:
        """Keeps the pixels of a sample that has a place, where there is room and it may be written.

        Pixels of another size than the index says have none.

        Raises:
            StorageError: The storage refuses.
        """
        if not self._writable or row >= self.places.samples:
            return
        place = self.places[row]
        if pixels.shape[:2] != (place.height, place.width):
            return
        data = pixels.reshape(-1).data
        state = digest(data) + bytes([1 + _DECODERS.index(decoder)])
        try:
            self._shards[place.shard].write(data, place.offset)
            self._states_file.write(memoryview(state), row * _STATE_BYTES)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise _storage_error(error, self.path) from error
            self._writable = False
            warnings.warn(
                f"no room is left for the pixel cache {self.path}: {self.count()} of "
                f"{self.places.samples} samples are in it, the others are decoded each time; make "
                "room, or give it a limit",
                stacklevel=2,
            )

    def count(self) -> int:
        """Counts the samples whose pixels are there."""
        return int(np.count_nonzero(self._states[:, CHECKSUM_BYTES]))

    def checksums(self) -> NDArray[np.uint8]:
        """Gives the checksums of all pixels: uint8, shape (samples, 16)."""
        return np.ascontiguousarray(self._states[:, :CHECKSUM_BYTES])

    def decoders(self) -> NDArray[np.str_]:
        """Names for each sample the library that decoded it; empty for what was pixels already."""
        names = np.array(["", "", *_DECODERS[1:]])
        return names[self._states[:, CHECKSUM_BYTES]]

    def shard(self, number: int) -> memoryview:
        """Gives the bytes of a shard's file, header included."""
        return self._shards[number].view

    def sync(self) -> None:
        """Flushes the pixels to the medium."""
        for file in self._shards:
            file.sync()


def shard_name(number: int) -> str:
    """Names the file of a shard."""
    return f"shard-{number:06d}{layout.SUFFIX}"


def _shard_sizes(places: Places) -> list[int]:
    return [layout.HEADER_BYTES + int(places.ends(rows)[-1]) for rows in places.shards()]


def _make(path: Path, places: Places, identity: bytes) -> None:
    """Makes the files under another name first: of two processes that do, one's are taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    room = os.statvfs(path.parent)
    free = room.f_bavail * room.f_frsize
    if places.nbytes > free:
        raise StorageFullError(
            f"the pixels of {places.samples} samples take {places.nbytes} bytes, and {free} are "
            f"free for {path}: make room, or give the cache a limit",
            path=str(path),
        )
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    draft.mkdir()
    try:
        for number, rows in enumerate(places.shards()):
            ends = places.ends(rows)
            whole = (int(ends[-1]),) if places.shape is None else (len(rows), *places.shape)
            with (draft / shard_name(number)).open("xb") as file:
                file.write(layout.header("|u1", whole))
                file.truncate(layout.HEADER_BYTES + int(ends[-1]))
                file.flush()
                os.fsync(file.fileno())
        with (draft / STATES).open("xb") as file:
            # Not a hole: where memory is the medium, looking into one takes a page.
            os.posix_fallocate(file.fileno(), 0, places.samples * _STATE_BYTES)
            os.fsync(file.fileno())
        write_whole(draft / IDENTITY, identity)
        draft.rename(path)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if not (isinstance(error, OSError) and path.exists()):
            raise
    sync_directory(path.parent)


def _storage_error(error: OSError, path: Path) -> OSError:
    if isinstance(error, PackError):
        return error
    return StorageError(f"{error.filename or path}: {error.strerror}", path=str(path))
