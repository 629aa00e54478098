"""A local disk that answers like a server far away."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass
class FarStorage:
    """What reads do meanwhile, and what they did."""

    delay: float = 0.0
    """Seconds that each read takes at least."""
    failure: int = 0
    """Number of the error that reads end with; 0 for none."""
    reads: list[tuple[int, int]] = field(default_factory=list)
    """Offset and length of each read."""
    most: int = 0
    """Reads that were under way at once, at most."""
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def read(self, offset: int, length: int) -> Iterator[None]:
        with self._lock:
            self.reads.append((offset, length))
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            time.sleep(self.delay)
            if self.failure:
                raise OSError(self.failure, os.strerror(self.failure))
            yield
        finally:
            with self._lock:
                self._now -= 1


def put_far_away(monkeypatch: pytest.MonkeyPatch, far: FarStorage) -> None:
    """Makes reads of shards slow, and unable to tell whether they would wait, as on FUSE."""
    pread, preadv = os.pread, os.preadv

    def slow_pread(descriptor: int, length: int, offset: int) -> bytes:
        if not _is_shard(descriptor):
            return pread(descriptor, length, offset)
        with far.read(offset, length):
            return pread(descriptor, length, offset)

    def slow_preadv(
        descriptor: int, buffers: Sequence[memoryview | bytearray], offset: int, flags: int = 0
    ) -> int:
        if not _is_shard(descriptor):
            return preadv(descriptor, buffers, offset, flags)
        if flags:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        with far.read(offset, sum(memoryview(buffer).nbytes for buffer in buffers)):
            return preadv(descriptor, buffers, offset)

    monkeypatch.setattr(os, "pread", slow_pread)
    monkeypatch.setattr(os, "preadv", slow_preadv)


def _is_shard(descriptor: int) -> bool:
    return Path(f"/proc/self/fd/{descriptor}").readlink().name.startswith("shard-")
