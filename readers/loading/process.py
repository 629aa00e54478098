"""A worker process, and the thread's end of it."""

from __future__ import annotations

import os
import pickle
import random
import signal
import traceback
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType

import numpy as np

from readers.loading.faults import WorkerDiedError, annotate, describe_exit
from readers.loading.maker import Abandoned, BatchMaker, Recipe, Task, name_batch
from readers.loading.memory import SharedOutput, receive_batch, send_batch
from readers.loading.output import Output
from readers.loading.start_method import Context
from readers.loading.stopwatch import ClockSource, ClockSources
from readers.loading.structure import map_arrays
from readers.permutation import derive_seed

_GRACE = 5.0
"""Seconds for a process that was asked to end."""
_LOOK_AFTER = 2.0
"""Seconds after which who waits looks around. An idle process looks whether its parent lives: the
end of the connection says so at once, unless another process has inherited the parent's end."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker process works with; pickled unless it is forked."""

    recipe: Recipe
    worker_init: Callable[[int], None] | None
    seed: int


class ProcessWorker:
    """Has batches made by a process of its own, which stays from pass to pass.

    Args:
        number: Of the worker.
        job: What the process works with.
        context: How processes are started.
        output: What arrays become, here.
    """

    def __init__(self, number: int, job: Job, context: Context, output: Output) -> None:
        self._number = number
        self._job = job
        self._context = context
        self._output = output
        self._busy = self._interrupted = self._usable = False
        self._connection: Connection | None = None
        self._process: BaseProcess | None = None
        self._end: Callable[[], object] = lambda: None

    def start(self, clocks: ClockSources) -> None:
        """Makes ready for a pass: starts the process unless it runs."""
        self._interrupted = False
        if self._usable and self._process is not None and self._process.is_alive():
            return
        self._end()
        here, there = self._context.Pipe()
        process = self._context.Process(
            target=_serve,
            args=((there, here), os.getpid(), self._number, self._job, clocks(self._number)),
            name=f"loader-{self._number}",
            daemon=True,
        )
        process.start()
        there.close()
        self._connection, self._process, self._usable = here, process, True
        self._end = weakref.finalize(self, _end_process, os.getpid(), process, here)

    def make(self, task: Task, /) -> object:
        """Has a batch made.

        Raises:
            Abandoned: The pass was ended meanwhile.
            WorkerDiedError: The process is gone.
            BaseException: What was raised there, with its traceback as a note.
        """
        self._busy = True
        try:
            if self._interrupted:
                raise Abandoned
            return map_arrays(self._exchange(task), self._output.deliver)
        finally:
            self._busy = False

    def end(self) -> None:
        """Ends the process; `start` starts another."""
        self._usable = False
        self._end()

    def interrupt(self) -> None:
        """Ends the process if it is making a batch; the next pass starts another."""
        self._interrupted = True
        if self._busy and self._process is not None:
            self._usable = False
            self._process.terminate()

    def _exchange(self, task: Task) -> object:
        connection = self._connection
        if connection is None:
            raise RuntimeError("start comes before make")
        try:
            connection.send(task)
            while not connection.poll(_LOOK_AFTER):
                if self._interrupted and self._process is not None:
                    self._process.kill()  # it was asked before, but is deaf to it
            reply = connection.recv()
            if not isinstance(reply, _Failure):
                return receive_batch(connection, reply)
        except (EOFError, ConnectionError) as error:
            self._usable = False
            if self._interrupted:
                raise Abandoned from None
            raise self._died(task) from error
        raise reply.error()

    def _died(self, task: Task) -> WorkerDiedError:
        exit_code = None
        if (process := self._process) is not None:
            process.join(_GRACE)
            exit_code = process.exitcode
        return WorkerDiedError(
            f"worker {self._number} (process {process.pid if process else '?'}) "
            f"{describe_exit(exit_code)} while it made {name_batch(task)}"
        )


@dataclass(frozen=True, slots=True)
class _Failure:
    """An error on its way to the loop."""

    pickled: bytes | None
    text: str

    @classmethod
    def of(cls, error: BaseException, worker: int) -> _Failure:
        text = "".join(traceback.format_exception(error))
        annotate(error, f"in worker {worker} (process {os.getpid()}):\n{text}")
        try:
            pickled = pickle.dumps(error)
            pickle.loads(pickled)  # noqa: S301 - our own
        except Exception:  # noqa: BLE001 - an error's own pickling may raise anything
            return cls(None, text)
        return cls(pickled, text)

    def error(self) -> BaseException:
        if self.pickled is None:
            return RuntimeError(f"a worker raised an error that can't be pickled:\n{self.text}")
        error: BaseException = pickle.loads(self.pickled)  # noqa: S301 - from our own worker
        return error


def _serve(
    ends: tuple[Connection, Connection], parent: int, number: int, job: Job, clocks: ClockSource
) -> None:
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
                self._connection.send(_Failure.of(error, self._number))
        finally:
            self._output.forget()


class _Left(BaseException):
    """The process was asked to end: the batch that it makes is given up in good order."""


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise _Left


def _next_task(connection: Connection, parent: int) -> Task | None:
    """Waits for a task; None when there are no more, or nobody is left to want them."""
    try:
        while not connection.poll(_LOOK_AFTER):
            os.kill(parent, 0)
        task: Task | None = connection.recv()
    except (EOFError, ConnectionError, ProcessLookupError):
        return None
    return task


def _end_process(owner: int, process: BaseProcess, connection: Connection) -> None:
    if os.getpid() != owner:
        return  # a fork: the process is its parent's
    with suppress(ConnectionError):
        connection.send(None)
    connection.close()
    process.join(_GRACE)
    if process.is_alive():
        process.kill()
        process.join()
    process.close()
