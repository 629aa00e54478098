"""How much of our path's time libjpeg-turbo and the resize take, and how much all the rest."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import cv2
import simplejpeg
from PIL import Image

from benchmarks.contest import Contest, Goal
from benchmarks.cost import Cost
from benchmarks.pipelines.endless import endless
from benchmarks.pipelines.ours import open_loader
from benchmarks.pipelines.task import Task
from benchmarks.race import Course

_ALL, _INSIDE = "ours, regions, one thread", "of it in libjpeg-turbo and the resize"
_GOAL = 0.9
_REMARK = (
    "processor time: of the whole process, and of its threads within simplejpeg.decode_jpeg, "
    "cv2.resize and Pillow's resize"
)


def measure(course: Course, source: Path, task: Task) -> Contest:
    """Makes batches with one worker, whose time in the libraries' functions is added up.

    Args:
        course: Where and how.
        source: The dataset.
        task: What is made; one worker makes it.
    """
    one = Task(str(source), batch=task.batch, side=task.side, workers=1, resize=task.resize)
    count = course.turn.batches
    costs: dict[str, list[Cost]] = {_ALL: [], _INSIDE: []}
    with _measured() as inside, open_loader(one) as loader:
        made = endless(loader)
        next(made)
        for _ in range(course.rounds):
            spent, began = inside(), time.process_time()
            deque(itertools.islice(made, count), maxlen=0)
            everything, own = time.process_time() - began, inside() - spent
            costs[_ALL].append(Cost(everything, everything))
            costs[_INSIDE].append(Cost(own, own))
    samples = count * task.batch
    return Contest(
        title=f"the decoder's share, {task.resize}",
        cache="warm",
        samples=samples,
        nbytes=round(course.tree.nbytes / len(course.tree.paths) * samples),
        costs=costs,
        baselines=(_INSIDE,),
        goals=(Goal(_ALL, "ratio", _GOAL, _INSIDE),),
        remarks=(_REMARK,),
    )


@contextmanager
def _measured() -> Iterator[Callable[[], float]]:
    """Adds up the processor time of all threads within the functions; gives a look at the sum."""
    spent = [0.0]
    lock = threading.Lock()

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: object, **options: object) -> object:
            began = time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                took = time.thread_time() - began
                with lock:
                    spent[0] += took

        return call

    with ExitStack() as stack:
        for place, name in ((simplejpeg, "decode_jpeg"), (cv2, "resize"), (Image.Image, "resize")):
            stack.enter_context(patch.object(place, name, timed(getattr(place, name))))
        yield lambda: spent[0]
