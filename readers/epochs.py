"""The number of the epoch, where a framework's loader copies a dataset into processes."""

from __future__ import annotations

import mmap

_SIZE = 8
_UNKNOWN = -1


class SharedEpoch:
    """A number that forked processes see change; others get what it is when they start.

    The framework's loaders don't tell a dataset the epoch: whoever trains has to. Until then it is
    unknown.
    """

    def __init__(self, epoch: int | None = None) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        self._write(_UNKNOWN if epoch is None else epoch)

    @property
    def known(self) -> int | None:
        """The epoch; None until it is told."""
        epoch = int.from_bytes(self._memory[:_SIZE], "little", signed=True)
        return None if epoch == _UNKNOWN else epoch

    def tell(self, epoch: int) -> None:
        """Sets the epoch, 0 or more."""
        self._write(epoch)

    def _write(self, epoch: int) -> None:
        self._memory[:_SIZE] = epoch.to_bytes(_SIZE, "little", signed=True)

    def __reduce__(self) -> tuple[type[SharedEpoch], tuple[int | None]]:
        return type(self), (self.known,)
