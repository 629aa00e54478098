"""From a source's positions to records, in order: read, prepare, judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from packer.engines.local import InOrder, worker_count
from packer.image_policy import Decode, ImagePolicy, Keep
from packer.options import ConvertOptions
from packer.prepare import prepare
from packer.protocols import PackSource, Record
from readers.errors import NotAnImageError, SampleError
from readers.manifest import Skipped
from readers.sample import Image, bytes_of

_MOST_READERS = 16
_KEPT_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one sample of the source."""

    record: Record | None
    remark: Skipped | None
    nbytes: int
    """Bytes of the image in the source."""
    stamp: bytes
    """Of its file, see `PackSource.stamp`."""

    @property
    def weight(self) -> int:
        """Bytes that it holds in memory."""
        return 0 if self.record is None else len(self.record.image)


class Pipeline:
    """Prepares samples of a source by a policy, in threads."""

    def __init__(self, source: PackSource, policy: ImagePolicy, options: ConvertOptions) -> None:
        self._source = source
        self._policy = policy
        self._options = options

    def run(self, positions: NDArray[np.int64]) -> Iterator[Outcome]:
        """Gives what became of each position, in order.

        Raises:
            SampleError: A sample can't be used and the options say to stop.
        """
        workers = worker_count(self._options.workers)
        if not (isinstance(self._policy, Keep) and self._policy.check == "header"):
            return InOrder(self.outcome, workers=workers, block=1).run(positions)
        most = 0
        if not self._options.workers:
            # The writer's threads take as much of a core as a reader does.
            workers, most = max(1, workers // 2), max(_MOST_READERS, workers)
        reading = InOrder(self.outcome, workers=workers, block=_KEPT_AT_ONCE, most=most)
        return reading.run(positions)

    def outcome(self, position: int) -> Outcome:
        """Reads and prepares one sample."""
        on_error = self._options.on_error
        nbytes = 0
        stamp = self._source.stamp(position)
        try:
            sample = self._source[position]
            nbytes = _size(sample.image)
            record = prepare(
                sample,
                self._policy,
                max_pixels=self._options.max_pixels,
                keep_bad=on_error == "keep",
            )
        except NotAnImageError as error:
            return self._refused(position, "left out", error, nbytes, stamp)
        except SampleError as error:
            if on_error == "stop":
                choices = "skip" if isinstance(self._policy, Decode) else "skip or keep"
                raise SampleError(
                    f"{error.message}; mend or remove it, or choose --on-error {choices}",
                    path=error.path,
                    offset=error.offset,
                    key=error.key,
                ) from error
            return self._refused(position, "skipped", error, nbytes, stamp)
        if record.note is None:
            return Outcome(record, None, nbytes, stamp)
        action = "kept" if record.bad else "noted"
        return Outcome(record, Skipped(record.path, action, record.note), nbytes, stamp)

    def _refused(
        self, position: int, action: str, error: SampleError, nbytes: int, stamp: bytes
    ) -> Outcome:
        path = self._source.path(position)
        reason = error.message.removeprefix(f"{path}: ")
        return Outcome(None, Skipped(path, action, reason), nbytes, stamp)


def _size(image: Image) -> int:
    return len(bytes_of(image))
