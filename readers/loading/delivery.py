"""Hands the batches of one pass to the loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

from readers.loading.crew import Crew, Made
from readers.loading.task import Task
from readers.progress import Progress


class Delivery(Iterator[Any]):
    """An iterator over the batches that a progress has left.

    Args:
        progress: What is left; it notes what the loop gets.
        crew: Who makes the batches.
        ahead: Batches that are being made or lie finished, at most. Where reading ahead is any use,
            as many again are being read or lie read, so that workers needn't wait for storage.
        in_order: Whether batches come in the order of the epoch; else as soon as they are made.
        turn: Number of the pass, as the monitor counts.
    """

    def __init__(
        self, progress: Progress, crew: Crew, *, ahead: int, in_order: bool, turn: int
    ) -> None:
        self._progress = progress
        self._crew = crew
        self._in_order = in_order
        self._lead = max(ahead, progress.together)
        self._turn = turn
        self._left = progress.remaining()
        self._coming: deque[Task] = deque()
        self._wanted: deque[int] = deque()
        self._early: dict[int, Made] = {}
        self._closed = self._superseded = False
        for _ in range(ahead):
            self._submit()

    def __next__(self) -> Any:  # noqa: ANN401 - what the user's collate gives
        """Gives the next batch.

        Raises:
            RuntimeError: Another pass over the loader was begun meanwhile.
            BaseException: What making the batch raised; the pass is over then.
        """
        if self._superseded:
            raise RuntimeError(
                "another pass over this loader has begun, which ended this one: for two at a time "
                "make two loaders"
            )
        if self._closed:
            raise StopIteration
        try:
            return self._deliver()
        except BaseException:  # whatever it was, Ctrl-C too: nobody goes on with this pass
            self.close()
            raise

    def close(self) -> None:
        """Ends the pass. Closing twice is fine."""
        if not self._closed:
            self._closed = True
            self._early.clear()
            self._coming.clear()
            self._crew.close()

    def supersede(self) -> None:
        """Ends the pass because of another one."""
        if not self._closed:
            self._superseded = True
            self.close()

    def _deliver(self) -> object:
        if not self._wanted:
            raise StopIteration
        made = self._take()
        if made.error is not None:
            try:
                raise made.error
            finally:
                del made  # the error's traceback holds this frame
        self._submit()
        self._progress.deliver(made.number)
        return made.batch

    def _take(self) -> Made:
        if not self._in_order:
            made = self._crew.take()
            self._wanted.remove(made.number)
            return made
        number = self._wanted.popleft()
        while number not in self._early:
            made = self._crew.take()
            self._early[made.number] = made
        return self._early.pop(number)

    def _submit(self) -> None:
        while len(self._coming) <= self._lead and (tasks := self._next_tasks()):
            self._coming += tasks
            if not self._crew.begin(tasks):
                break
        if self._coming:
            task = self._coming.popleft()
            self._wanted.append(task.number)
            self._crew.submit(task)

    def _next_tasks(self) -> list[Task]:
        """Gives the next tasks that are read at once."""
        epoch, turn = self._progress.epoch, self._turn
        some = islice(self._left, self._progress.together)
        return [Task(turn, epoch, number, indices) for number, indices in some]
