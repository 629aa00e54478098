"""The directory of a run: the facts of its loader, the rings of its threads.

::

    facts.json        LoaderFacts, written when the loader is known
    rings/            one file a thread
    recording.jsonl   everything that was kept, written when the run ends
    lock              locked as long as the run's processes live

Any process may look on. A private directory goes away with its process; one that was left behind by
a killed process goes away when the next one is made.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import time
import weakref
from dataclasses import asdict
from pathlib import Path

from readers.errors import CorruptDatasetError, DatasetBusyError, DatasetNotFoundError
from readers.monitor import ring, stacks
from readers.monitor.collector import Collector
from readers.monitor.record import LoaderFacts
from readers.monitor.recording import Recording, load_recording

_PREFIX = "packer-monitor-"
_SETTLED = 60.0
FACTS = "facts.json"
_RINGS = "rings"
_RECORDING = "recording.jsonl"
_LOCK = "lock"


class Run:
    """The directory of a run that this process makes.

    Attributes:
        path: The directory.
        rings: Where the rings are.
        recording: Where the recording goes when the run ends; None in a private directory.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Makes the directory.

        Args:
            path: Where; stays when the run ends. None for a private one under the directory for
                temporary files, which doesn't.

        Raises:
            DatasetBusyError: Another run goes on there.
            OSError: It can't be made.
        """
        if path is None:
            _remove_stale(Path(tempfile.gettempdir()))
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self.recording = None
        else:
            self.path = path
            self.recording = path / _RECORDING
        self.rings = self.path / _RINGS
        self.rings.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _locked(lock):
            os.close(lock)
            raise DatasetBusyError(
                f"another loader monitor writes to {self.path}: give each its own directory",
                path=str(self.path),
            )
        for suffix in (ring.SUFFIX, stacks.SUFFIX):
            for left in self.rings.glob(f"*{suffix}"):
                left.unlink()
        self._owner = os.getpid()
        self.close = weakref.finalize(
            self, _end, self.path, lock, self._owner, private=path is None
        )

    def is_ours(self) -> bool:
        """Tells whether this process made the run, and not one that it was forked from."""
        return os.getpid() == self._owner

    def write_facts(self, facts: LoaderFacts) -> None:
        """Writes what is known of the loader, for those who look on."""
        new = self.path / f"{FACTS}.new"
        new.write_text(json.dumps(asdict(facts)), "utf-8")
        new.replace(self.path / FACTS)


def read_run(path: Path) -> Recording:
    """Reads what a run has measured: all that was kept if it has ended, else what its rings hold.

    Raises:
        DatasetNotFoundError: There is no run.
        CorruptDatasetError: It is damaged.
    """
    if (path / _RECORDING).is_file():
        return load_recording(path / _RECORDING)
    collector = Collector(path / _RINGS)
    collector.collect()
    return collector.recording(read_facts(path))


def read_facts(path: Path) -> LoaderFacts:
    """Reads what is known of the loader of a run.

    Raises:
        DatasetNotFoundError: There is no run.
        CorruptDatasetError: It is damaged.
    """
    file = path / FACTS
    try:
        return LoaderFacts(**json.loads(file.read_text("utf-8")))
    except FileNotFoundError as error:
        raise DatasetNotFoundError(
            f"{path} has no {FACTS}, so no loader monitor has run there", path=str(path)
        ) from error
    except (ValueError, TypeError) as error:
        raise CorruptDatasetError(
            f"{file} doesn't hold the facts of a loader: {error}", path=str(file)
        ) from error


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end(path: Path, lock: int, owner: int, *, private: bool) -> None:
    """Ends a run; a process that was forked meanwhile leaves it alone."""
    if os.getpid() == owner:
        if private:
            shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _remove_stale(parent: Path) -> None:
    """Removes the private directories of processes that were killed.

    Locks, unlike process numbers, also tell of processes in other containers. A directory that was
    made a moment ago may not be locked yet.
    """
    for path in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            state = path.stat()
            if state.st_uid != os.getuid() or time.time() - state.st_mtime < _SETTLED:
                continue
            lock = os.open(path / _LOCK, os.O_RDWR)
            try:
                if _locked(lock):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)
