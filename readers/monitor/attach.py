"""The monitor of one loader, whatever its framework."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from readers.errors import OptionError, WorkerDiedError
from readers.monitor.attached import AttachedLoader
from readers.monitor.caretaker import Caretaker
from readers.monitor.collector import Collector
from readers.monitor.failure import contained, failures
from readers.monitor.hooks import Hooks, Place
from readers.monitor.hooks_iterable import IterableHooks
from readers.monitor.hooks_megengine import MegEngineHooks
from readers.monitor.hooks_paddle import PaddleHooks
from readers.monitor.hooks_readers import ReadersHooks
from readers.monitor.hooks_torch import TorchHooks
from readers.monitor.log import BatchLog, Style
from readers.monitor.numbering import EpochCounter
from readers.monitor.patches import Patches
from readers.monitor.periodic import Periodic
from readers.monitor.proxy import unwrapped
from readers.monitor.record import LoaderFacts
from readers.monitor.recording import Recording, save_recording
from readers.monitor.ring import RingWriter
from readers.monitor.run import FACTS, Run, read_facts
from readers.monitor.steps import EpochSteps, SteppedIterator
from readers.monitor.words import STEP_WIDTH, STEPS
from readers.span import DATASET, IDLE

L = TypeVar("L")

_HOOKS: Final[tuple[Hooks, ...]] = (
    TorchHooks(),
    PaddleHooks(),
    MegEngineHooks(),
    ReadersHooks(),
    IterableHooks(),
)
_LOOK_AFTER: Final = 1.0


class LoaderMonitor:
    """Measures one loader of PyTorch, PaddlePaddle, MegEngine, or anything that gives batches.

    ::

        monitor = LoaderMonitor()
        loader = monitor.attach(loader)
        for batch in loader:
            ...
        monitor.recording()

    What goes wrong within the monitor never reaches the training loop: it is counted in `failures`
    and logged once by the logger `readers.monitor`.
    """

    def __init__(
        self,
        *,
        window: int = 200,
        every: int = 1,
        os_counters: bool = True,
        run: Path | None = None,
        log: Callable[[str], object] | None = None,
        style: Style = "default",
        keep: int = 10_000,
        memory_every: float = 5.0,
        samples: int = 0,
    ) -> None:
        """Begins a run.

        Args:
            window: Batches and steps of `snapshot`.
            every: A line of the log for so many batches of a worker.
            os_counters: Whether CPU, run queue, bytes and page faults are measured.
            run: Directory of the run, to look on from other processes; stays, with all that was
                measured, when the run ends. None for a private one, which doesn't stay.
            log: Takes a line of the log, such as `print`; None for no log.
            style: How a line of the log looks.
            keep: Batches and steps that are kept, the last ones; 200 bytes each.
            memory_every: Seconds between two looks at the memory of the processes.
            samples: How many of the slowest samples are kept, with how often a sample takes how
                long. Each sample is then timed and read by itself, even where the dataset could
                read many at once. 0: samples aren't timed, which costs nothing.

        Raises:
            DatasetBusyError: Another run goes on in that directory.
            OptionError: An option makes no sense.
        """
        if window < 1 or keep < 1 or memory_every <= 0 or samples < 0:
            raise OptionError(
                f"window {window}, keep {keep}, memory_every {memory_every}: must be positive, and"
                f" samples {samples} not negative"
            )
        self._window = window
        self._os_counters = os_counters
        self._samples = samples
        lines = BatchLog(log, style=style, every=every) if log is not None else None
        self._failures_before = failures.count
        self._run = Run(run)
        self._collector = Collector(
            self._run.rings,
            keep=keep,
            slowest=samples or 1,
            owner=True,
            on_batch=None if lines is None else lines.batch,
        )
        self._on_step = None if lines is None else lines.step
        self._steps = RingWriter(self._run.rings, kind=STEPS, width=STEP_WIDTH, worker=-1)
        self._periodic = Periodic(
            Caretaker(self._collector, memory_every), min(_LOOK_AFTER, memory_every)
        )
        self._epoch = EpochCounter()
        self._patches = Patches()
        self._numbered = False
        self._facts: LoaderFacts | None = None
        self._loader: Any = None
        self._finish = weakref.finalize(self, _finish, self._run, self._collector)

    @property
    def directory(self) -> Path:
        """Directory of the run, for `packer monitor top`."""
        return self._run.path

    @property
    def facts(self) -> LoaderFacts:
        """What is known of the loader.

        Raises:
            OptionError: No loader was attached.
        """
        if self._facts is None:
            raise OptionError("attach a loader first")
        return self._facts

    @property
    def failures(self) -> int:
        """Failures since this monitor was made, in this process and in the workers that are read.

        Those of other monitors in this process count as well.
        """
        return failures.count - self._failures_before + self._collector.failures

    def attach(self, loader: L) -> L:
        """Begins to measure a loader.

        The loader's dataset, transform, collate function and batch sampler are replaced by proxies
        until `detach`. Workers that a loader keeps between epochs start anew.

        Args:
            loader: A loader, or anything else to iterate, of which only the steps are timed.

        Returns:
            What iterates like the loader and is the loader in all else: an `AttachedLoader`. Once
            detached it measures nothing.

        Raises:
            OptionError: It can't be iterated, or this monitor has a loader already or was closed.
        """
        if self._loader is not None:
            raise OptionError("this monitor has a loader: make a LoaderMonitor for each")
        if not self._finish.alive:
            raise OptionError("this monitor was closed: make a LoaderMonitor for each run")
        hooks = next((hooks for hooks in _HOOKS if hooks.recognises(loader)), None)
        if hooks is None:
            raise OptionError(f"a {type(loader).__name__} can't be iterated: attach a loader")
        self._loader = loader
        self._install(hooks, loader)
        return cast(L, AttachedLoader(loader, self, self._iterate))

    def detach(self, loader: Any) -> Any:  # noqa: ANN401 - the loader of `attach`
        """Puts the loader back into the state that it had; what was measured stays.

        Args:
            loader: The loader, or what `attach` gave for it.

        Returns:
            The loader itself.

        Raises:
            OptionError: It isn't the loader of this monitor.
        """
        loader = unwrapped(loader)
        if loader is not self._loader:
            raise OptionError("that loader isn't attached to this monitor")
        self._patches.undo()
        self._loader = None
        return loader

    def recording(self) -> Recording:
        """Gives everything that is kept.

        Raises:
            OptionError: No loader was attached.
        """
        self._collector.collect()
        return self._collector.recording(self.facts)

    def snapshot(self) -> Recording:
        """Gives the last `window` batches and steps.

        Raises:
            OptionError: No loader was attached.
        """
        self._collector.collect()
        return self._collector.recording(self.facts, last=self._window)

    def close(self) -> None:
        """Ends the run; a directory that was given gets the recording. Closing twice is fine.

        The end of the process does the same.
        """
        if self._loader is not None:
            self.detach(self._loader)
        self._periodic.settle()
        self._finish()

    @contained
    def _install(self, hooks: Hooks, loader: Any) -> None:  # noqa: ANN401 - any framework's loader
        self._facts = IterableHooks().facts(loader)
        self._facts = hooks.facts(loader)
        self._run.write_facts(self._facts)
        place = Place(
            rings=str(self._run.rings),
            os_counters=self._os_counters,
            samples=self._samples,
            main=os.getpid(),
            epoch=self._epoch,
        )
        self._numbered = hooks.install(loader, place, self._patches)
        if self._facts.framework != "iterable":
            self._collector.expected = max(1, self._facts.workers)

    def _iterate(self, loader: Any) -> Iterator[Any]:  # noqa: ANN401 - the loader of `attach`
        if self._loader is None:
            return iter(loader)  # it was detached
        epoch = self._epoch.next()
        self._prepare()
        batches = iter(loader)
        steps = EpochSteps(
            epoch,
            numbered=self._numbered,
            made=self._collector.made,
            write=self._steps.append,
            keep=self._collector.add_step,
            on_step=self._on_step,
        )
        self._start()
        return SteppedIterator(batches, steps, self._broken_off, partial(self._over, epoch))

    @contained
    def _prepare(self) -> None:
        """Leaves neither a thread of ours nor rings of dead threads to the new epoch."""
        self._periodic.settle()
        self._collector.collect()
        self._collector.forget_dead()
        self._steps.beat(DATASET)

    @contained
    def _start(self) -> None:
        self._periodic.start()

    @contained
    def _broken_off(self, error: Exception) -> None:
        """Notes whose death ended an epoch; our own loader ends all workers at any error."""
        if self.facts.framework != "readers" or isinstance(error, WorkerDiedError):
            self._collector.collect()
            self._collector.note_died()

    @contained
    def _over(self, epoch: int) -> None:
        """Ends an epoch, before the loader ends its workers."""
        if epoch == self._epoch.number:
            self._steps.beat(IDLE)
        self._periodic.stop()


@contained
def _finish(run: Run, collector: Collector) -> None:
    """Ends a run, unless this process was forked from the one that began it."""
    if run.is_ours():
        collector.collect()
        if run.recording is not None and (run.path / FACTS).exists():
            save_recording(run.recording, collector.recording(read_facts(run.path)))
    run.close()
