"""What a worker process does: makes batches until nobody wants any."""

from __future__ import annotations

import os
import pickle
import random
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from types import FrameType

import numpy as np

from readers.loading.faults import annotate
from readers.loading.maker import BatchMaker, Recipe
from readers.loading.memory import SharedOutput, send_batch
from readers.loading.stopwatch import ClockSource
from readers.loading.task import Task
from readers.permutation import derive_seed

LOOK_AFTER = 2.0
"""Seconds after which who waits looks around. An idle process looks whether its parent lives: the
end of the connection says so at once, unless another process has inherited the parent's end."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker process works with; pickled unless it is forked."""

    recipe: Recipe
    worker_init: Callable[[int], None] | None
    seed: int


@dataclass(frozen=True, slots=True)
class Failure:
    """An error on its way to the loop."""

    pickled: bytes | None
    text: str

    @classmethod
    def of(cls, error: BaseException, worker: int) -> Failure:
        """Packs an error, with its traceback as a note."""
        text = "".join(traceback.format_exception(error))
        annotate(error, f"in worker {worker} (process {os.getpid()}):\n{text}")
        try:
            pickled = pickle.dumps(error)
            pickle.loads(pickled)  # noqa: S301 - our own
        except Exception:  # noqa: BLE001 - an error's own pickling may raise anything
            return cls(None, text)
        return cls(pickled, text)

    def error(self) -> BaseException:
        """Unpacks it; one that can't be pickled becomes a `RuntimeError` with its traceback."""
        if self.pickled is None:
            return RuntimeError(f"a worker raised an error that can't be pickled:\n{self.text}")
        error: BaseException = pickle.loads(self.pickled)  # noqa: S301 - from our own worker
        return error


def serve(
    ends: tuple[Connection, Connection], parent: int, number: int, job: Job, clocks: ClockSource
) -> None:
    """Makes batches in a process of its own.

    Args:
        ends: The connection to the loop, and the loop's end of it.
        parent: The loop's process.
        number: Of this worker.
        job: What to work with.
        clocks: Where the clock comes from.
    """
    connection, other_end = ends
    other_end.close()  # so that the parent's end is the parent's alone, and its death seen
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the loop, which ends this
    signal.signal(signal.SIGTERM, _leave)
    seed = derive_seed(job.seed, number)
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)  # noqa: NPY002 - forks would all draw the same
    if job.worker_init is not None:
        job.worker_init(number)
    output = SharedOutput()
    maker = BatchMaker(job.recipe, output)
    reply = _Reply(connection, parent, number, output)
    with suppress(_Left):
        while (task := _next_task(connection, parent)) is not None:
            reply.give(partial(maker.make, task, clocks))


class _Reply:
    """What goes back for a task."""

    def __init__(
        self, connection: Connection, parent: int, number: int, output: SharedOutput
    ) -> None:
        self._connection = connection
        self._parent = parent
        self._number = number
        self._output = output

    def give(self, make: Callable[[], object]) -> None:
        """Sends the batch, or what went wrong with it."""
        try:
            send_batch(self._connection, self._parent, make(), self._output)
        except _Left:
            raise
        except BaseException as error:  # noqa: BLE001 - raised again by the loop
            with suppress(ConnectionError):
                self._connection.send(Failure.of(error, self._number))
        finally:
            self._output.forget()


class _Left(BaseException):
    """The process was asked to end: the batch that it makes is given up in good order."""


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise _Left


def _next_task(connection: Connection, parent: int) -> Task | None:
    """Waits for a task; None when there are no more, or nobody is left to want them."""
    try:
        while not connection.poll(LOOK_AFTER):
            os.kill(parent, 0)
        task: Task | None = connection.recv()
    except (EOFError, ConnectionError, ProcessLookupError):
        return None
    return task
