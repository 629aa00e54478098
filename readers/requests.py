"""Threads that wait for storage, so that many requests are under way at once."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from time import monotonic
from types import TracebackType
from typing import TypeAlias

from typing_extensions import Self

Job: TypeAlias = Callable[[], object]
_Queue: TypeAlias = "SimpleQueue[tuple[weakref.ref[Begun], Job] | None]"


class Begun:
    """Jobs that are under way. When nobody holds this any longer, what hasn't begun never does."""

    def __init__(self, jobs: int) -> None:
        self._left = jobs
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def run(self, job: Job) -> None:
        """Does a job, in one of the threads."""
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - raised again in `wait`
            self._ended.put(error)
        else:
            self._ended.put(None)

    def wait(self, timeout: float | None = None) -> None:
        """Waits until all jobs are done.

        Args:
            timeout: Seconds to wait at most; None for any time.

        Raises:
            TimeoutError: They take longer.
            BaseException: What the first one that failed raised.
        """
        end = None if timeout is None else monotonic() + timeout
        while self._left:
            try:
                error = self._ended.get(
                    timeout=None if end is None else max(0.0, end - monotonic())
                )
            except Empty:
                raise TimeoutError(f"{self._left} requests go on after {timeout} s") from None
            self._left -= 1
            if error is not None:
                try:
                    raise error
                finally:
                    del error  # its traceback holds this frame


class Requests:
    """A number of threads, started when they are first needed, anew in a forked process.

    They end when this is closed or nobody holds it any longer. They are daemons: a read that never
    returns holds up no exit.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._crew: _Crew | None = None

    def begin(self, jobs: Sequence[Job]) -> Begun:
        """Takes jobs, which are begun in their order."""
        crew = self._crew
        if crew is None or crew.owner != os.getpid():
            crew = self._crew = _Crew(self._threads)
        begun = Begun(len(jobs))
        reference = weakref.ref(begun)
        for job in jobs:
            crew.queue.put((reference, job))
        return begun

    def close(self) -> None:
        """Lets the threads end when they have done what they do."""
        self._crew = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.close()


class _Crew:
    """The threads of one process. They know the queue only, so that they end with this object."""

    def __init__(self, threads: int) -> None:
        self.owner = os.getpid()
        self.queue: _Queue = SimpleQueue()
        weakref.finalize(self, _end, self.owner, self.queue, threads)
        for number in range(threads):
            threading.Thread(
                target=_work, args=(self.queue,), name=f"reader-{number}", daemon=True
            ).start()


def _work(queue: _Queue) -> None:
    while (item := queue.get()) is not None:
        reference, job = item
        begun = reference()
        if begun is not None:
            begun.run(job)
        del item, job, begun  # waiting here must not keep anything alive


def _end(owner: int, queue: _Queue, threads: int) -> None:
    if os.getpid() != owner:
        return  # a fork has no threads to end, and a lock of the queue may be held for ever there
    for _ in range(threads):
        queue.put(None)
