"""Finds out what a dataset lies on, measures it if need be, and chooses how it is read."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from readers.access import AccessOption, Choice, choose, wants_probe
from readers.errors import PackError
from readers.folder import Folder
from readers.manifest import Manifest
from readers.probe import Probe, probe
from readers.storage import Storage

_FILES = 4
_SECONDS = {"memory": 0.0, "local": 0.2, "network": 1.0, "unknown": 0.5}

_measured: dict[tuple[int, int, int], Probe | None] = {}
"""What this process has measured, by mount: a storage is measured once, and keeps no file of it."""
_under_way: set[tuple[int, int, int]] = set()


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of the storage beneath a dataset."""

    storage: Storage
    probe: Probe | None
    choice: Choice = field(compare=False)


def survey(
    folder: Folder,
    manifest: Manifest,
    option: AccessOption,
    *,
    copy: bool,
    always: bool = False,
) -> Survey:
    """Surveys the storage.

    Args:
        folder: The dataset's directory.
        manifest: What it holds.
        option: What the user wants.
        copy: Whether images are to be copies.
        always: Whether to measure what the choice doesn't depend on, too.
    """
    storage = folder.storage()
    known = _measured.get(storage.identity)
    if storage.kind != "memory" and (always or (wants_probe(storage, option) and _may_measure())):
        known = _probed(folder, manifest, storage)
    return Survey(storage, known, choose(storage, option, copy=copy, probe=known))


def _may_measure() -> bool:
    """Tells whether this is no worker: many that measure at once would measure each other."""
    return multiprocessing.parent_process() is None


def _probed(folder: Folder, manifest: Manifest, storage: Storage) -> Probe | None:
    if storage.identity in _measured:
        return _measured[storage.identity]
    if storage.identity in _under_way:
        return None  # several threads that measure would measure each other
    _under_way.add(storage.identity)
    nbytes = sum(shard.bytes for shard in manifest.shards)
    found = None
    # What can't be measured is read all the same, and is an error where it is wanted.
    with suppress(OSError, PackError), _opened(folder, manifest) as files:
        found = probe(files, nbytes // max(1, manifest.samples), seconds=_SECONDS[storage.kind])
    return _measured.setdefault(storage.identity, found)


@contextmanager
def _opened(folder: Folder, manifest: Manifest) -> Iterator[list[tuple[int, int]]]:
    """Opens the largest shards."""
    files = sorted((shard.files[0] for shard in manifest.shards), key=lambda file: -file.bytes)
    with ExitStack() as stack:
        opened = []
        for file in files[:_FILES]:
            descriptor = folder.open(file)
            stack.callback(os.close, descriptor)
            opened.append((descriptor, file.bytes))
        yield opened
