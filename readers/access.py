"""How bytes are fetched from the storage that a dataset lies on, and what suits which storage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from readers.errors import OptionError
from readers.probe import Probe
from readers.storage import Storage

Method: TypeAlias = Literal["mmap", "pread"]
Readahead: TypeAlias = Literal["normal", "random", "sequential"]

MOST_REQUESTS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How the extents of a batch are read.

    What becomes of the bytes, copies or views, is `open_dataset`'s `copy` and no matter of this.
    """

    method: Method = "pread"
    """`pread`: bytes are read into memory of the process; a file that is cut meanwhile is an error.
    `mmap`: the files are mapped, and a page that isn't in memory is fetched when it is touched."""
    requests: int = 16
    """Extents of a batch that are asked for at once, 1 to 256, unless they are in memory already:
    by as many threads, which also fetch the loader's next batches meanwhile. Of maps the kernel is
    told all extents of a batch at once (POSIX_FADV_WILLNEED) if this is more than 1."""
    gap: int = 16 << 10
    """Bytes between two extents up to which both are read at once; not for maps."""
    readahead: Readahead = "normal"
    """What the kernel is told of the order that single reads come in."""
    timeout: float | None = None
    """Seconds after which waiting for a batch ends in a `StorageError`; None waits as long as the
    storage does. Not for maps, nor for a sample that is read alone."""

    def __post_init__(self) -> None:
        if self.method not in ("mmap", "pread"):
            raise OptionError(f"access must be 'mmap' or 'pread', not {self.method!r}")
        if self.readahead not in ("normal", "random", "sequential"):
            raise OptionError(
                f"readahead must be 'normal', 'random' or 'sequential', not {self.readahead!r}"
            )
        if not 1 <= self.requests <= MOST_REQUESTS:
            raise OptionError(f"requests must be 1 to {MOST_REQUESTS}, not {self.requests}")
        if self.gap < 0 or (self.timeout is not None and self.timeout <= 0):
            raise OptionError(f"gap {self.gap} and timeout {self.timeout} can't be negative")


AccessOption: TypeAlias = Access | Method | None
"""What `open_dataset` takes: everything, the method alone, or None for what suits the storage."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An access, and why."""

    access: Access
    reason: str


_MEMORY = Access(requests=1)
_LOCAL = Access()
_NETWORK = Access(gap=32 << 10)
_SLOW = 0.0005
"""Seconds for a small read beyond which storage of an unknown kind is taken for a network: flash
answers in a fifth of that. (A spinning disk, in ten times that, is served well by threads too.)"""
_MOST_GAP = 128 << 10


def choose(
    storage: Storage, option: AccessOption = None, *, copy: bool = True, probe: Probe | None = None
) -> Choice:
    """Chooses what suits a storage, as far as the user hasn't.

    Args:
        storage: What the dataset lies on.
        option: What the user wants.
        copy: Whether images are to be copies; views of local files come from a map.
        probe: What was measured; None where nothing was.
    """
    if isinstance(option, Access):
        return Choice(option, "as it was asked for")
    access, reason, near = _suitable(storage, probe)
    if option is None and near and not copy:
        return Choice(replace(access, method="mmap"), f"{reason}; views come from a map")
    if option in (None, access.method):
        return Choice(access, reason)
    return Choice(replace(access, method="mmap"), f"a map, as it was asked for; {reason}")


def wants_probe(storage: Storage, option: AccessOption) -> bool:
    """Says whether a measurement would change the choice."""
    return option in (None, "pread") and storage.kind in ("network", "unknown")


def _suitable(storage: Storage, probe: Probe | None) -> tuple[Access, str, bool]:
    """Gives an access, why, and whether the storage is near."""
    if storage.kind == "memory":
        return _MEMORY, "it is in memory", True
    if probe is not None and not probe.is_cold:
        probe = None
    near = storage.kind == "local" or (
        storage.kind == "unknown" and probe is not None and probe.latency <= _SLOW
    )
    if near:
        words = "near storage: what is in memory is copied, the rest is asked for at once"
        return _LOCAL, words + ("" if probe is None else f"; {_measured(probe)}"), True
    words = "each read waits for a server, so many are under way"
    if probe is None:
        return _NETWORK, f"{words}; nothing was measured", False
    # A busy moment makes a storage look worse than it is: a measurement raises, but never lowers.
    requests, gap = max(_NETWORK.requests, probe.requests), max(_NETWORK.gap, probe.gap)
    access = replace(_NETWORK, requests=requests, gap=min(_MOST_GAP, gap))
    return access, f"{words}; {_measured(probe)}", False


def _measured(probe: Probe) -> str:
    return (
        f"a small read takes {probe.latency * 1000:.2f} ms, {probe.requests} reads at once give "
        f"{probe.gain:.1f} times as much as one after the other, {probe.bandwidth / 1e6:.0f} MB/s"
    )
