"""Samples of several batches that are read at once, handed out batch by batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from readers.loading.task import Task

Wait: TypeAlias = Callable[[], list[Any]]
"""Waits for samples and gives them."""
Part: TypeAlias = Callable[[], "list[Any] | None"]
"""Likewise; None where the samples of another batch can't be read: each is read by itself then."""


def parts_of(wait: Wait, tasks: Sequence[Task]) -> dict[int, Part]:
    """Gives each task's part of what is waited for, by the number of the batch.

    A part is given once, so that what it holds is let go of with its batch.
    """
    if len(tasks) == 1:
        return {tasks[0].number: wait}
    shared, start = _Shared(wait), 0
    parts: dict[int, Part] = {}
    for task in tasks:
        parts[task.number] = partial(shared.part, start, start + len(task.indices))
        start += len(task.indices)
    return parts


class _Shared:
    def __init__(self, wait: Wait) -> None:
        self._wait = wait
        self._lock = threading.Lock()
        self._items: list[Any] | None = None
        self._failed = False

    def part(self, start: int, end: int) -> list[Any] | None:
        with self._lock:
            if self._items is None and not self._failed:
                try:
                    self._items = self._wait()
                except Exception:  # noqa: BLE001 - raised again for the batch that it belongs to
                    self._failed = True
            items = self._items
            if items is None:
                return None
            part = items[start:end]
            items[start:end] = [None] * (end - start)
        return part
