"""One line a batch, in three styles, written by the main process.

`default`::

    [pid:1234] idx:256 dataset_time:0.120000s transform_time:0.080000s collate_time:0.020000s
    worker:1 n:32 cpu:0.190000s runq:0.002000s blocked:0.028000s read_bytes:3670016   (same line)

`megengine`, as MegEngine 1.13.3 prints it, with its second kind of line for the hand-off::

    pid: 3866, idx: 0, dataset_time: 0.008553, transform_time: 0.004575, collate_time: 0.000501
    pid: 3859, idx: 0, IPC_time: 0.004538

`json`: a line of a recording.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from readers.errors import OptionError
from readers.monitor.record import UNKNOWN, BatchRecord, StepRecord
from readers.monitor.recording import line_of

Style: TypeAlias = Literal["default", "megengine", "json"]

_SECOND: Final = 1_000_000_000
_STAMPS_KEPT: Final = 1024


class BatchLog:
    """Writes a line of every so many batches of each worker, so that each worker gets its turn."""

    def __init__(
        self, write: Callable[[str], object], *, style: Style = "default", every: int = 1
    ) -> None:
        """Begins a log.

        Args:
            write: Takes a line without its end, such as `print`.
            style: How a line looks.
            every: One line for so many batches of a worker.

        Raises:
            OptionError: There is no such style, or `every` isn't positive.
        """
        if style not in _LINES:
            raise OptionError(f"log style {style!r}: choose one of {', '.join(_LINES)}")
        if every < 1:
            raise OptionError(f"a line every {every} batches: choose 1 or more")
        self._write = write
        self._line = _LINES[style]
        self._every = every
        self._hand_off = style == "megengine"
        self._ended: dict[tuple[int, int], int] = {}
        self._received: dict[tuple[int, int], int] = {}

    def batch(self, record: BatchRecord) -> None:
        """Writes a batch if it is its turn."""
        if record.sequence % self._every:
            return
        self._write(self._line(record))
        if self._hand_off and UNKNOWN not in {record.worker, record.batch}:
            self._ended[record.epoch, record.batch] = record.ended
            self._match(record.epoch, record.batch)

    def step(self, step: StepRecord) -> None:
        """Writes how long a batch was on its way, in MegEngine's style.

        That is the time from the end of the batch in the worker to its delivery, so it includes
        what it waited for the loop.
        """
        if self._hand_off and step.batch != UNKNOWN:
            self._received[step.epoch, step.batch] = step.began + step.wait
            self._match(step.epoch, step.batch)

    def _match(self, epoch: int, batch: int) -> None:
        """Writes the line once both ends are known; the batch may be read after its delivery."""
        key = epoch, batch
        if key in self._ended and key in self._received:
            seconds = max(0, self._received.pop(key) - self._ended.pop(key)) / _SECOND
            self._write(f"pid: {os.getpid()}, idx: {batch}, IPC_time: {seconds:.6f}")
        for stamps in (self._ended, self._received):
            if len(stamps) > _STAMPS_KEPT:
                del stamps[next(iter(stamps))]


def default_line(record: BatchRecord) -> str:
    """Writes a batch in the default style; what is unknown is left out."""
    known = {
        "idx": None if record.batch == UNKNOWN else str(record.batch),
        "dataset_time": _seconds(record.dataset),
        "transform_time": _seconds(record.transform),
        "collate_time": _seconds(record.collate),
        "worker": _count(record.worker),
        "n": _count(record.samples),
        "read": _seconds(record.read),
        "decode": _seconds(record.decode),
        "cpu": _seconds(record.cpu),
        "runq": _seconds(record.queued),
        "blocked": _seconds(record.blocked),
        "rchar": _count(record.read_calls_bytes),
        "read_bytes": _count(record.storage_bytes),
        "majflt": _count(record.major_faults),
        "bytes": _count(record.nbytes),
        "epoch": _count(record.epoch),
        "seq": _count(record.sequence),
    }
    fields = " ".join(f"{name}:{value}" for name, value in known.items() if value is not None)
    return f"[pid:{record.pid}] {fields}"


def megengine_line(record: BatchRecord) -> str:
    """Writes a batch in MegEngine's style; its serial loader has no number."""
    number = "" if record.batch == UNKNOWN else f"idx: {record.batch}, "
    return (
        f"pid: {record.pid}, {number}dataset_time: {record.dataset / _SECOND:.6f}, "
        f"transform_time: {record.transform / _SECOND:.6f}, "
        f"collate_time: {record.collate / _SECOND:.6f}"
    )


def _seconds(nanoseconds: int) -> str | None:
    return None if nanoseconds == UNKNOWN else f"{nanoseconds / _SECOND:.6f}s"


def _count(count: int) -> str | None:
    return None if count == UNKNOWN else str(count)


_LINES: Final[Mapping[str, Callable[[BatchRecord], str]]] = MappingProxyType(
    {"default": default_line, "megengine": megengine_line, "json": line_of}
)
