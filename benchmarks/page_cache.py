"""The page cache: files put out of it, and how much of them is in it."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

_DROP = Path("/proc/sys/vm/drop_caches")
_PAGES_AND_INODES = "3"
_LIBC = ctypes.CDLL(None, use_errno=True)


def evict(paths: Iterable[Path]) -> None:
    """Puts the contents of files out of the page cache; needs no rights, only clean pages."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def drop_everything() -> bool:
    """Empties the kernel's caches of pages, directory entries and inodes, where that is allowed.

    Returns:
        Whether it was.
    """
    try:
        _DROP.write_text(_PAGES_AND_INODES, encoding="ascii")
    except OSError:
        return False
    return True


def cached_share(paths: Iterable[Path]) -> float:
    """Says which share of the pages of files is in the page cache."""
    cached = pages = 0
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            if not size:
                continue
            with mmap.mmap(descriptor, size, prot=mmap.PROT_READ) as mapped:
                present = _present(mapped, size)
        finally:
            os.close(descriptor)
        cached += int((present & 1).sum())
        pages += len(present)
    return cached / pages if pages else 0.0


def _present(mapped: mmap.mmap, size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    present = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
    content = np.frombuffer(mapped, np.uint8)
    address, length = ctypes.c_void_p(content.ctypes.data), ctypes.c_size_t(size)
    if _LIBC.mincore(address, length, ctypes.c_void_p(present.ctypes.data)):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return present
