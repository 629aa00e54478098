"""Who makes the batches of one pass: the loop itself, or threads beside it."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Protocol, TypeAlias

from readers.loading.maker import Abandoned
from readers.loading.task import Task

_PATIENCE = 5.0
"""Seconds that closing waits for threads: one may be at a read that never ends."""


@dataclass(frozen=True, slots=True)
class Made:
    """What became of a task: a batch, or an error."""

    number: int
    batch: object
    error: BaseException | None


class Worker(Protocol):
    """Makes batches, one at a time, in the thread that calls it."""

    def make(self, task: Task, /) -> object:
        """Makes a batch."""

    def interrupt(self) -> None:
        """Makes a call of `make` in another thread end soon."""


class Crew(Protocol):
    """Takes tasks and gives what became of them, each once, in the order of completion."""

    def begin(self, tasks: Sequence[Task], /) -> bool:
        """Begins to read for tasks that will be submitted; tells whether that is any use."""

    def submit(self, task: Task, /) -> None:
        """Takes a task."""

    def take(self) -> Made:
        """Gives the next result, waiting for it."""

    def close(self) -> None:
        """Ends all work and waits for the end. Closing twice is fine."""


Begin: TypeAlias = Callable[[Sequence[Task]], bool]
"""Begins to read for some tasks, if that is any use."""


def begin_nothing(_tasks: Sequence[Task]) -> bool:
    """Is for workers that read when they make a batch."""
    return False


class InlineCrew:
    """The loop makes each batch itself when it asks for it.

    Args:
        worker: What makes them.
        begin: Reads ahead.
    """

    def __init__(self, worker: Worker, begin: Begin = begin_nothing) -> None:
        self._worker = worker
        self._begin = begin
        self._tasks: deque[Task] = deque()

    def begin(self, tasks: Sequence[Task], /) -> bool:
        """Begins to read for some tasks."""
        return self._begin(tasks)

    def submit(self, task: Task, /) -> None:
        """Keeps the task."""
        self._tasks.append(task)

    def take(self) -> Made:
        """Does the next task."""
        task = self._tasks.popleft()
        return Made(task.number, self._worker.make(task), None)

    def close(self) -> None:
        """Forgets the tasks."""
        self._tasks.clear()


class ThreadCrew:
    """One thread for each worker.

    The threads don't know this object, so that it ends them when nobody holds it any longer, at the
    latest when the interpreter exits.

    Args:
        workers: What makes batches, each in its thread.
        begin: Reads ahead.
    """

    def __init__(self, workers: Sequence[Worker], begin: Begin = begin_nothing) -> None:
        self._begin = begin
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._results: SimpleQueue[Made] = SimpleQueue()
        threads = [
            threading.Thread(
                target=_work,
                args=(worker, self._tasks, self._results),
                name=f"loader-{number}",
                daemon=True,
            )
            for number, worker in enumerate(workers)
        ]
        self.close = weakref.finalize(self, _end, os.getpid(), self._tasks, workers, threads)
        for thread in threads:
            thread.start()

    def begin(self, tasks: Sequence[Task], /) -> bool:
        """Begins to read for some tasks."""
        return self._begin(tasks)

    def submit(self, task: Task, /) -> None:
        """Hands the task to the next free thread."""
        self._tasks.put(task)

    def take(self) -> Made:
        """Waits for the next result."""
        return self._results.get()


def _work(worker: Worker, tasks: SimpleQueue[Task | None], results: SimpleQueue[Made]) -> None:
    while (task := tasks.get()) is not None:
        try:
            made = Made(task.number, worker.make(task), None)
        except Abandoned:
            return
        except BaseException as error:  # noqa: BLE001 - raised again in the loop's thread
            made = Made(task.number, None, error)
        results.put(made)
        del made  # the batch is the user's: waiting here must not keep it alive


def _end(
    owner: int,
    tasks: SimpleQueue[Task | None],
    workers: Sequence[Worker],
    threads: Sequence[threading.Thread],
) -> None:
    if os.getpid() != owner:
        return  # a fork has no threads to end, and the workers aren't its own
    with suppress(Empty):
        while True:
            tasks.get_nowait()
    for _ in threads:
        tasks.put(None)
    for worker in workers:
        worker.interrupt()
    end = monotonic() + _PATIENCE
    for thread in threads:
        if thread is not threading.current_thread():  # which collects garbage just now
            thread.join(max(0.0, end - monotonic()))
