"""The loop's end of a worker process."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from readers.errors import WorkerDiedError
from readers.loading.faults import describe_exit
from readers.loading.maker import Abandoned, name_batch
from readers.loading.memory import receive_batch
from readers.loading.output import Output
from readers.loading.serving import LOOK_AFTER, Failure, Job, serve
from readers.loading.start_method import Context
from readers.loading.stopwatch import ClockSources
from readers.loading.structure import map_arrays
from readers.loading.task import Task

_GRACE = 5.0
"""Seconds for a process that was asked to end."""


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
            target=serve,
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
            while not connection.poll(LOOK_AFTER):
                if self._interrupted and self._process is not None:
                    self._process.kill()  # it was asked before, but is deaf to it
            reply = connection.recv()
            if not isinstance(reply, Failure):
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
