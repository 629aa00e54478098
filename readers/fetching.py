"""Reads the extents of a batch: out of memory one by one, from a medium many at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from readers.access import Access
from readers.errors import StorageError
from readers.extents import CopiedFile, MappedFile, OpenFiles
from readers.folder import Folder
from readers.manifest import File
from readers.requests import Requests
from readers.sample import Image

_LOOKED_AT = 8
"""Extents of a batch of which it is looked whether they are in memory. Where a fifth of the data is
not, that finds it five times in six; where less is, little is lost."""
_PIECE, _AT_ONCE = 1 << 20, 16
_LEAST_RUN, _MOST_RUN = 128 << 10, 4 << 20

Wait: TypeAlias = Callable[[], list[Image]]
"""Waits for the images of a batch and gives them, in the order asked."""


class Extents(NamedTuple):
    """Where the images of a batch lie: file number, offset and length of each, in bytes."""

    numbers: Sequence[int]
    offsets: Sequence[int]
    lengths: Sequence[int]


def bring_near(folder: Folder, file: File) -> None:
    """Reads a file once by many requests, so that a map of it finds it in memory.

    Raises:
        CorruptDatasetError: The file is missing or of another size.
        StorageError: It can't be read.
    """
    opened = CopiedFile(folder, file)
    pieces = range(0, file.bytes, _PIECE)
    with Requests(_AT_ONCE) as requests:
        requests.begin(
            [partial(opened.read, start, min(_PIECE, file.bytes - start)) for start in pieces]
        ).wait()


class Fetch(Protocol):
    """Reads batches of extents that are known to lie within their files."""

    def read(self, extents: Extents, /) -> list[Image]:
        """Reads a batch."""

    def begin(self, extents: Extents, /) -> Wait | None:
        """Begins to read a batch in the background; None where nothing is gained by it."""


def make_fetch(
    folder: Folder, files: tuple[File, ...], access: Access, *, copy: bool, pixels: bool
) -> Fetch:
    """Makes what reads in the way of an access.

    Args:
        folder: Where the files are.
        files: All of them, by number.
        access: How they are read.
        copy: Whether each image is a copy of its own, `bytes` or an array that may be written to;
            else it is a `memoryview`, or an array that may not.
        pixels: Whether images are arrays, flat.
    """
    if access.method == "mmap":
        mapped = OpenFiles(folder, files, MappedFile, access.readahead)
        return _FromMaps(mapped, _of_map(copy=copy, pixels=pixels), access)
    opened = OpenFiles(folder, files, CopiedFile, access.readahead)
    take, cut = _of_file(copy=copy, pixels=pixels), _of_run(copy=copy, pixels=pixels)
    return _FromFiles(opened, take, cut, access, folder.path)


_Take: TypeAlias = Callable[[Any, int, int], Image]
"""Gives the image at (offset, length) of an open file, or of the bytes of a run."""


def _of_map(*, copy: bool, pixels: bool) -> _Take:
    if not copy:
        return MappedFile.read_array if pixels else MappedFile.read
    if pixels:
        return lambda file, offset, length: file.read_array(offset, length).copy()
    return lambda file, offset, length: bytes(file.read(offset, length))


def _of_file(*, copy: bool, pixels: bool) -> _Take:
    if copy:
        return CopiedFile.read_array if pixels else CopiedFile.read
    if pixels:
        return lambda file, offset, length: np.frombuffer(file.read(offset, length), np.uint8)
    return lambda file, offset, length: memoryview(file.read(offset, length))


def _of_run(*, copy: bool, pixels: bool) -> _Take:
    if pixels and copy:
        return lambda run, start, length: np.frombuffer(run, np.uint8, length, start).copy()
    if pixels:
        return lambda run, start, length: np.frombuffer(run, np.uint8, length, start)
    if copy:
        return lambda run, start, length: run[start : start + length]
    return lambda run, start, length: memoryview(run)[start : start + length]


def _in_memory(
    files: OpenFiles[CopiedFile] | OpenFiles[MappedFile], extents: Extents
) -> bool | None:
    """Says whether a batch is in memory, by looking at some of its extents; None if nobody knows.

    A read that may not wait (preadv2(2), RWF_NOWAIT) tells, where the file system knows such reads.
    """
    if not hasattr(os, "RWF_NOWAIT"):
        return None
    byte = bytearray(1)
    count = len(extents.numbers)
    for place in range(0, count, -(-count // _LOOKED_AT)):
        file = files[extents.numbers[place]]  # held: another thread may let go of it
        try:
            os.preadv(file.descriptor, [byte], extents.offsets[place], os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return None
    return True


class _FromMaps:
    """Gives what is mapped, after telling the kernel which extents are wanted.

    Who touches a page that isn't in memory waits for it with the interpreter's lock held, and for
    megabytes around it: telling before brings what is wanted, all at once.
    """

    def __init__(self, files: OpenFiles[MappedFile], take: _Take, access: Access) -> None:
        self._files = files
        self._take = take
        self._tells = access.requests > 1 and hasattr(os, "posix_fadvise")

    def read(self, extents: Extents, /) -> list[Image]:
        if self._tells and len(extents.numbers) > 1 and not _in_memory(self._files, extents):
            self._tell(extents)
        files, take = self._files, self._take
        places = zip(*extents, strict=True)
        return [take(files[number], offset, length) for number, offset, length in places]

    def begin(self, extents: Extents, /) -> None:
        """Nothing is gained: what is told of is fetched in the background anyway."""

    def _tell(self, extents: Extents) -> None:
        for number, offset, length in zip(*extents, strict=True):
            file = self._files[number]
            os.posix_fadvise(file.descriptor, offset, length, os.POSIX_FADV_WILLNEED)


class _FromFiles:
    """Has threads wait for the extents, in the order of the files; neighbours are read at once.

    What is in memory already is copied in the thread that asks: threads would only cost then.
    """

    def __init__(
        self, files: OpenFiles[CopiedFile], take: _Take, cut: _Take, access: Access, root: Path
    ) -> None:
        self._files = files
        self._take = take
        self._cut = cut
        self._access = access
        self._root = root
        self._requests = Requests(access.requests)

    def read(self, extents: Extents, /) -> list[Image]:
        if self._is_near(extents):
            files, take = self._files, self._take
            places = zip(*extents, strict=True)
            return [take(files[number], offset, length) for number, offset, length in places]
        return self._begin(extents)()

    def begin(self, extents: Extents, /) -> Wait | None:
        return None if self._is_near(extents) else self._begin(extents)

    def _is_near(self, extents: Extents) -> bool:
        if len(extents.numbers) < 2 or self._access.requests == 1:  # noqa: PLR2004 - nothing to overlap
            return True
        return _in_memory(self._files, extents) is True

    def _begin(self, extents: Extents) -> Wait:
        images: list[Any] = [None] * len(extents.numbers)
        jobs = [_Run(self, extents, places, images) for places in self._runs(extents)]
        begun = self._requests.begin(jobs)

        def wait() -> list[Image]:
            timeout = self._access.timeout
            try:
                begun.wait(timeout)
            except TimeoutError as error:
                raise StorageError(
                    f"{self._root}: the storage has not answered for {timeout} s ({error}); "
                    "see to the mount, or open the dataset with a longer timeout",
                    path=str(self._root),
                ) from error
            return images

        return wait

    def fetch(self, extents: Extents, places: list[int], images: list[Any]) -> None:
        """Reads some extents of one file, which lie close together."""
        file = self._files[extents.numbers[places[0]]]
        start = extents.offsets[places[0]]
        if len(places) == 1:
            images[places[0]] = self._take(file, start, extents.lengths[places[0]])
            return
        end = max(extents.offsets[place] + extents.lengths[place] for place in places)
        run = file.read(start, end - start)
        for place in places:
            offset, length = extents.offsets[place], extents.lengths[place]
            images[place] = self._cut(run, offset - start, length)

    def _runs(self, extents: Extents) -> Iterator[list[int]]:
        """Puts together which extents are read at once, by their places in the batch."""
        numbers, offsets, lengths = extents.numbers, extents.offsets, extents.lengths
        limit = min(max(sum(lengths) // self._access.requests, _LEAST_RUN), _MOST_RUN)
        run: list[int] = []
        number = start = end = -1
        for place in sorted(range(len(numbers)), key=lambda at: (numbers[at], offsets[at])):
            offset, after = offsets[place], offsets[place] + lengths[place]
            near = numbers[place] == number and offset - end <= self._access.gap
            if run and near and max(after, end) - start <= limit:
                run.append(place)
                end = max(end, after)
                continue
            if run:
                yield run
            run, number, start, end = [place], numbers[place], offset, after
        if run:
            yield run


@dataclass(frozen=True, slots=True)
class _Run:
    """One request."""

    fetch: _FromFiles
    extents: Extents
    places: list[int]
    images: list[Any]

    def __call__(self) -> None:
        self.fetch.fetch(self.extents, self.places, self.images)
