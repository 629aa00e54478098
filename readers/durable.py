"""Small files that are there whole or not at all, even after a power cut."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Numbers of the errors by which a storage says that it is full."""


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file on the medium under another name, then gives it its own.

    Raises:
        OSError: The storage refuses.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    with temporary.open("xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Flushes a directory's entries to the medium, where that can be done: over SMB it can't."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}:
            raise
    finally:
        os.close(descriptor)
