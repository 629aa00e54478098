"""Where a dataset grows until it is complete.

Beside the destination `photos.lmdb` stands `photos.lmdb.partial`::

    claim           which run works here, see `packer.claim`
    plan            fingerprint of the plan, and what is done with bad samples
    open/           the shard that is being written; emptied when a run begins
    journal/        what is known of the shards that are done, see `packer.journal`
    dataset/        the shards that are done, at last with index and manifest
    replaced/       the dataset that an overwriting run puts aside between two renames

The dataset appears under its name by one rename, so nothing with a final name is ever incomplete.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from packer.claim import Claim
from readers.durable import sync_directory, write_whole
from readers.errors import DatasetBusyError, DatasetExistsError, OptionError, StorageError
from readers.manifest import MANIFEST, File

SUFFIX = ".partial"


class Workspace:
    """The directory of an unfinished run, held by a claim.

    Attributes:
        destination: Where the dataset will stand.
        path: The workspace.
        open: Directory of the shard that is being written.
        journal: Directory of what is known of the finished shards.
        dataset: Directory that becomes the dataset.
    """

    def __init__(self, destination: Path) -> None:
        """Makes or finds the workspace and takes the claim.

        Raises:
            OptionError: The destination has no name.
            DatasetBusyError: Another run holds it.
            StorageError: It can't be made there.
        """
        if not destination.name:
            raise OptionError(f"{destination} can't be a dataset: choose a directory inside of it")
        self.destination = destination
        self.path = destination.with_name(destination.name + SUFFIX)
        self.open = self.path / "open"
        self.journal = self.path / "journal"
        self.dataset = self.path / "dataset"
        self._plan = self.path / "plan"
        self._replaced = self.path / "replaced"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._claim = Claim(self.path / "claim")
        except DatasetBusyError:
            raise
        except OSError as error:
            raise StorageError(
                f"{self.path} can't be made: {error.strerror}; choose another destination",
                path=str(self.path),
            ) from error

    def begin(self, plan: str, on_error: str, *, resume: bool, overwrite: bool) -> None:
        """Gets ready for a plan: goes on with what is there, or clears it away.

        Shards that were finished under `on_error` stop hold no bad sample, so any other choice may
        go on with them.

        Args:
            plan: Fingerprint of the plan.
            on_error: What to do with bad samples.
            resume: Whether finished shards of the same plan are kept.
            overwrite: Whether finished shards of another plan, and a dataset at the destination,
                may be discarded.

        Raises:
            DatasetExistsError: Finished shards of another plan lie here, or something stands at the
                destination, and overwriting wasn't asked for.
            OptionError: What stands at the destination is no dataset, so it isn't overwritten.
        """
        wanted = f"{plan} {on_error}"
        found = self._plan.read_text(encoding="ascii") if self._plan.exists() else ""
        same = found in {wanted, f"{plan} stop"}
        if not same and not overwrite and next(self.journal.glob("*.json"), None):
            raise DatasetExistsError(
                f"{self.path} is an unfinished run of another source or other options; repeat that "
                "command to finish it, or discard it with --overwrite",
                path=str(self.path),
            )
        if not (same and resume and self.is_complete()):
            self._check_destination(overwrite=overwrite)
        if not same or not resume:
            for old in (self._plan, self.journal, self.dataset):
                _remove(old)
            for directory in (self.journal, self.dataset):
                directory.mkdir()
        if found != wanted:
            write_whole(self._plan, wanted.encode())
        _remove(self.open)
        self.open.mkdir()

    def holds(self, files: Iterable[File]) -> bool:
        """Tells whether finished files are there, in full size."""
        try:
            return all((self.dataset / f.name).stat().st_size == f.bytes for f in files)
        except FileNotFoundError:
            return False

    def prune(self, files: Iterable[File]) -> None:
        """Removes all but these from the finished files."""
        names = {file.name for file in files}
        for path in self.dataset.iterdir():
            if path.name not in names:
                _remove(path)

    def place(self, *files: File) -> None:
        """Moves finished files from `open` to `dataset`."""
        for file in files:
            (self.open / file.name).rename(self.dataset / file.name)
        sync_directory(self.dataset)

    def publish(self, *, overwrite: bool) -> None:
        """Gives the finished dataset its name and removes the workspace.

        Raises:
            DatasetBusyError: The claim was given to another run.
            DatasetExistsError: Something came to stand at the destination meanwhile.
            StorageError: The name can't be given.
        """
        self._claim.check()
        if self.dataset.exists():
            self._check_destination(overwrite=overwrite)
            self._rename()
        sync_directory(self.destination.parent)
        self.discard()

    def _rename(self) -> None:
        if self.destination.exists():
            if next(self.destination.iterdir(), None) is None:
                self.destination.rmdir()
            else:
                _remove(self._replaced)
                self.destination.rename(self._replaced)
        try:
            self.dataset.rename(self.destination)
        except OSError as error:
            raise StorageError(
                f"{self.dataset} can't be renamed to {self.destination}: {error.strerror}; if that "
                "is where a file system is mounted, choose a directory inside of it",
                path=str(self.destination),
            ) from error

    def is_complete(self) -> bool:
        """Tells whether a killed run had finished the dataset, published or not."""
        made = self.dataset if self.dataset.exists() else self.destination
        return (made / MANIFEST).exists()

    def discard(self) -> None:
        """Removes the workspace with everything in it, plan and claim last."""
        for child in self.path.iterdir():
            if child.name not in {"plan", "claim"}:
                _remove(child)
        _remove(self._plan)
        self.release()

    def release(self) -> None:
        """Gives up the claim, and the directory if nothing was begun in it."""
        self._claim.release()
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def _check_destination(self, *, overwrite: bool) -> None:
        if not os.path.lexists(self.destination):
            return
        if self.destination.is_dir() and next(self.destination.iterdir(), None) is None:
            return
        if not overwrite:
            raise DatasetExistsError(
                f"{self.destination} exists; choose another destination or add --overwrite",
                path=str(self.destination),
            )
        if not (self.destination / MANIFEST).is_file():
            raise OptionError(
                f"{self.destination} is no dataset of ours, so it isn't overwritten; remove it or "
                "choose another destination",
                path=str(self.destination),
            )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
