"""Our own data loader."""

from __future__ import annotations

import logging
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Literal, TypeAlias

from typing_extensions import Self

from readers.block_shuffle import BlockShuffle
from readers.dataset import Dataset
from readers.errors import OptionError
from readers.loading.crews import ProcessCrews, ThreadCrews
from readers.loading.maker import Collate, Items, Recipe
from readers.loading.output import OutputName, make_output
from readers.loading.passes import Crews, Manner, Passes
from readers.loading.serving import Job
from readers.loading.start_method import start_method
from readers.loading.transform import StandardTransform, Transform
from readers.monitor.attach import LoaderMonitor
from readers.monitor.diagnosis import diagnose
from readers.monitor.facts import usable_cores
from readers.monitor.failure import contained
from readers.monitor.recording import Recording
from readers.monitor.report import report_text, verdict_text
from readers.monitor.switch import Switch, read_switch
from readers.order import suitable_order
from readers.progress import State
from readers.sampling import EpochSampling, GivenBatches, Indices, Sampling

WorkerKind: TypeAlias = Literal["thread", "fork", "forkserver", "spawn"]
"""What a worker is: a thread of this process, or a process that is started in that way."""

_log = logging.getLogger(__name__)

_MOST_WORKERS = 8
_NO_ORDER = (None, False, False, 0, 1)


class MonitoredLoader:
    """Makes batches of a source beside the training loop, and knows where their time goes.

    ::

        loader = MonitoredLoader(open_dataset(path), 256, transform=augment, shuffle=True)
        for epoch in range(90):
            for images, labels in loader:
                ...
        print(loader.report())

    Each `for` goes over the next epoch. There is one pass at a time: a new one ends the one before.
    A pass that is left early, by `break` or an error, stops its workers at once.

    What goes wrong while a batch is made is raised in the loop as it is, in the batch's turn, with
    a note (`__notes__`) that names the sample; the pass is over then.

    Args:
        source: A dataset, or any sequence. Threads read from it at once; with worker processes
            other than by `fork` it is pickled.
        batch_size: Samples in a batch; not with `batches`.
        transform: Takes a sample as the source gives it and makes what goes into the batch. None
            stands for `ImageTransform()`, which gives (pixels, label), where the source gives a
            `Sample`, and leaves anything else as it is. If it has `write_into`
            (`readers.loading.transform.WritesInto`), it is given the batch's own memory.
        collate: Makes a batch of the list of transformed samples. None stacks them, see
            `readers.loading.columns`: a dict, tuple or list of samples becomes one of columns;
            arrays of one shape become an array, numbers too, mixed sizes a list.
        workers: How many make batches; 0: the loop does, when it asks; None: as many as there are
            cores for this process, 8 at most.
        worker_kind: Threads suit transforms that release the GIL, as decoding, NumPy and OpenCV do.
            Processes suit those that hold it; their batches come back in shared memory.
        worker_init: Called in each worker process when it starts, with the worker's number.
        shuffle: Whether each epoch has an order of its own, see `readers.sampling`: True shuffles
            all samples, a `readers.block_shuffle.BlockShuffle` nearly so, but reads far storage in
            long pieces. "auto" chooses by the storage and the size of samples, and logs what.
        seed: Of the order, and of the random numbers of transforms that take them from
            `readers.draws`, 0 to 2**64 - 1. The latter depend on seed, epoch and sample alone.
        drop_last: Whether a last batch that isn't full is left out.
        prefetch: Batches that each worker makes ahead; `workers * prefetch` are under way at most.
        in_order: Whether batches come in the order of the epoch. Without, a slow batch holds up no
            other.
        rank: Number of this process among those that train together.
        world_size: How many those are.
        output: What the batch's arrays are: NumPy's, or tensors of `torch` or `paddle` in the
            host's memory.
        pin_memory: Whether tensors lie in page-locked memory.
        batches: Indices of the samples of each batch, iterated once an epoch, in place of
            batch_size, shuffle, drop_last, rank and world_size. The random numbers of transforms
            then depend on a sample's place in the batch too, so that one that comes twice comes
            differently; ranks that share samples want a seed each.
        monitor: What measures this loader; None for one of its own, which writes a line a batch to
            stderr if the environment says so (`readers.monitor.switch`), and the verdict when the
            loader is gone, at the latest when the program ends.

    Raises:
        OptionError: The options contradict each other.
        MissingDependencyError: The framework of the output isn't installed.
    """

    def __init__(
        self,
        source: Items,
        batch_size: int | None = None,
        *,
        transform: Transform | None = None,
        collate: Collate | None = None,
        workers: int | None = None,
        worker_kind: WorkerKind = "thread",
        worker_init: Callable[[int], None] | None = None,
        shuffle: bool | BlockShuffle | Literal["auto"] = False,
        seed: int = 0,
        drop_last: bool = False,
        prefetch: int = 2,
        in_order: bool = True,
        rank: int = 0,
        world_size: int = 1,
        output: OutputName = "numpy",
        pin_memory: bool = False,
        batches: Iterable[Indices] | None = None,
        monitor: LoaderMonitor | None = None,
    ) -> None:
        if batches is None:
            sampling: Sampling = EpochSampling(
                samples=len(source),
                batch_size=batch_size or 0,
                shuffle=_order_of(source, shuffle=shuffle),
                seed=seed,
                rank=rank,
                world_size=world_size,
                drop_last=drop_last,
            )
        elif (batch_size, shuffle, drop_last, rank, world_size) == _NO_ORDER:
            sampling = GivenBatches(batches)
        else:
            raise OptionError(
                "batches decide themselves what batch_size, shuffle, drop_last, rank and "
                "world_size are about: leave these out"
            )
        manner = Manner(
            workers=min(_MOST_WORKERS, usable_cores()) if workers is None else workers,
            threads=worker_kind == "thread",
            prefetch=prefetch,
            in_order=in_order,
            batch_size=batch_size,
        )
        recipe = Recipe(
            source,
            transform or StandardTransform(),
            collate,
            seed=seed,
            may_repeat=batches is not None,
        )
        tensors = make_output(output, pin_memory=pin_memory)
        crews: Crews = (
            ThreadCrews(recipe, tensors)
            if worker_kind == "thread"
            else ProcessCrews(Job(recipe, worker_init, seed), start_method(worker_kind), tensors)
        )
        self._passes = Passes(source, sampling, crews, manner)
        switch = read_switch()
        self._monitor = _default_monitor(switch) if monitor is None else monitor
        self._measured = (
            self._passes if self._monitor is None else self._monitor.attach(self._passes)
        )
        if switch.on and monitor is None and self._monitor is not None:
            weakref.finalize(self, _tell_verdict, self._monitor, os.getpid())

    def __len__(self) -> int:
        """Gives the number of batches of a whole epoch.

        Raises:
            TypeError: The user's batches don't tell.
        """
        return len(self._passes)

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass over the next epoch, or over what `load_state_dict` has left of one."""
        return iter(self._measured)

    def set_epoch(self, epoch: int) -> None:
        """Makes the next pass go over that epoch.

        It begins at the epoch's start, unless `load_state_dict` has just said where in it.
        """
        self._passes.set_epoch(epoch)

    def state_dict(self) -> State:
        """Gives how far the loop has come: the batches that it has got count as done.

        A loader with the same source, shuffle and seed goes on from there, with any number of
        workers; after batches in order also with another batch_size or world_size.
        """
        return self._passes.state()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Makes the next pass go on where the state was taken.

        Raises:
            OptionError: It is no state, or one of other samples or another order.
        """
        self._passes.restore(state)

    def recording(self) -> Recording:
        """Gives what was measured, the last batches and steps.

        Raises:
            OptionError: The monitor could not be started; the log says why.
        """
        if self._monitor is None:
            raise OptionError("the loader's monitor could not be started: see the log")
        return self._monitor.recording()

    def report(self) -> str:
        """Says in words where the time goes, and what to do about it.

        Raises:
            OptionError: As for `recording`.
        """
        return report_text(self.recording())

    def close(self) -> None:
        """Ends the pass that goes on and all workers; a later pass starts new ones."""
        self._passes.close()

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


def _order_of(source: Items, *, shuffle: bool | BlockShuffle | str) -> bool | BlockShuffle:
    if not isinstance(shuffle, str):
        return shuffle
    if shuffle != "auto":
        raise OptionError(f"shuffle is {shuffle!r}: it is True, False, a BlockShuffle or 'auto'")
    if not isinstance(source, Dataset):
        return True
    order = suitable_order(source)
    _log.warning("%s: %s", source.root, order.reason)
    return order.shuffle or True


@contained
def _default_monitor(switch: Switch) -> LoaderMonitor:
    return LoaderMonitor(every=switch.every, log=_to_stderr if switch.on else None)


@contained
def _tell_verdict(monitor: LoaderMonitor, owner: int) -> None:
    """Writes what is the matter, unless this process was forked from the loader's."""
    if os.getpid() == owner:
        recording = monitor.recording()
        _to_stderr(verdict_text(recording, diagnose(recording)))


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
