"""Where the workers of a loader's passes come from."""

from __future__ import annotations

from readers.loading.crew import Crew, InlineCrew, ThreadCrew
from readers.loading.local import LocalWorker
from readers.loading.maker import BatchMaker, Recipe
from readers.loading.output import Output
from readers.loading.process import ProcessWorker
from readers.loading.serving import Job
from readers.loading.start_method import Context
from readers.loading.stopwatch import ClockSources
from readers.monitor.record import UNKNOWN


class ThreadCrews:
    """Threads of this process, new ones for each pass.

    Args:
        recipe: What batches are made of.
        output: What arrays become.
    """

    def __init__(self, recipe: Recipe, output: Output) -> None:
        self._recipe = recipe
        self._output = output

    def open(self, workers: int, clocks: ClockSources) -> Crew:
        """Starts the workers of a pass; without any, the loop makes the batches."""
        maker = BatchMaker(self._recipe, self._output)
        if workers == 0:
            return InlineCrew(LocalWorker(maker, clocks(UNKNOWN)), maker.begin)
        crew = [LocalWorker(maker, clocks(number)) for number in range(workers)]
        return ThreadCrew(crew, maker.begin)

    def close(self) -> None:
        """Nothing stays from pass to pass."""


class ProcessCrews:
    """Processes, which stay from pass to pass unless one is left early.

    Args:
        job: What they work with.
        context: How they are started.
        output: What arrays become.
    """

    def __init__(self, job: Job, context: Context, output: Output) -> None:
        self._job = job
        self._context = context
        self._output = output
        self._processes: list[ProcessWorker] = []

    def open(self, workers: int, clocks: ClockSources) -> Crew:
        """Starts the workers of a pass that don't run yet."""
        if workers == 0:
            return ThreadCrews(self._job.recipe, self._output).open(workers, clocks)
        for number in range(len(self._processes), workers):
            self._processes.append(ProcessWorker(number, self._job, self._context, self._output))
        for process in self._processes[:workers]:
            process.start(clocks)
        return ThreadCrew(self._processes[:workers])

    def close(self) -> None:
        """Ends all of them."""
        for process in self._processes:
            process.end()
        self._processes.clear()
