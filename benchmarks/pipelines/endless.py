"""Epoch after epoch."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.pipelines.task import Batches


def endless(loader: Iterable[tuple[object, object]]) -> Batches:
    """Goes over a loader again and again.

    Raises:
        ValueError: It gives no batch at all.
    """
    while True:
        count = 0
        for count, batch in enumerate(loader, 1):  # noqa: B007 - counts
            yield batch
        if not count:
            raise ValueError("there are fewer pictures than a batch has")
