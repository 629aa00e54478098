"""A timeline that Perfetto (ui.perfetto.dev) and chrome://tracing open.

The format is "Trace Event Format" (Google, 2016): a JSON object with a list of events; `X` is a
slice, `C` a counter, `M` a name; times are microseconds. A worker's stages lie one after the other
in its batch: where a framework mixes them sample by sample, only their sums are known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from readers.errors import OptionError
from readers.monitor.record import UNKNOWN, BatchRecord, StepRecord
from readers.monitor.recording import Recording
from readers.monitor.workers import worker_name

Event = dict[str, object]
Track = tuple[int, int]
"""Process and thread."""

_MAIN: Track = (0, 0)
"""Of the loop; workers have their own."""


def write_trace(recording: Recording, path: Path) -> None:
    """Writes the timeline of a recording.

    Raises:
        OptionError: The recording tells no stamps: it was read from a log.
        OSError: The file can't be written.
    """
    if any(batch.began == UNKNOWN for batch in recording.batches):
        raise OptionError("a log doesn't tell when batches were made: give a run or its recording")
    with path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
        separator = ""
        for event in trace_events(recording):
            file.write(separator + json.dumps(event))
            separator = ",\n"
        file.write("\n]}\n")


def trace_events(recording: Recording) -> Iterator[Event]:
    """Gives the events; times count from the first record."""
    stamps = [step.began for step in recording.steps]
    stamps += [batch.began for batch in recording.batches]
    begin = min(stamps, default=0)
    yield _name("process_name", _MAIN, "training loop")
    yield _name("thread_name", _MAIN, "wait and compute")
    makers = {(batch.pid, batch.thread): worker_name(batch) for batch in recording.batches}
    for track, name in makers.items():
        yield _name("process_name", track, f"{name} (pid {track[0]})")
        yield _name("thread_name", track, name)
    for step in recording.steps:
        yield from _step(step, begin)
    for batch in recording.batches:
        yield from _batch(batch, begin)
    for taken in recording.memory:
        name = "memory of main" if taken.worker == UNKNOWN else f"memory of worker {taken.worker}"
        yield _counter(name, taken.stamp - begin, taken.unique)


def _step(step: StepRecord, begin: int) -> Iterator[Event]:
    at = step.began - begin
    facts: Event = {"epoch": step.epoch, "batch": step.batch, "samples": step.samples}
    yield _slice("wait", _MAIN, at, step.wait, facts)
    if step.compute != UNKNOWN:
        yield _slice("compute", _MAIN, at + step.wait, step.compute, facts)
    if step.ready != UNKNOWN:
        yield _counter("ready batches", at, step.ready)
    if step.shared_memory_free != UNKNOWN:
        yield _counter("free shared memory", at, step.shared_memory_free)


def _batch(batch: BatchRecord, begin: int) -> Iterator[Event]:
    at, track = batch.began - begin, (batch.pid, batch.thread)
    known = ("cpu", "queued", "blocked", "read", "decode", "storage_bytes", "major_faults")
    facts: Event = {name: value for name in known if (value := getattr(batch, name)) != UNKNOWN} | {
        "samples": batch.samples,
        "epoch": batch.epoch,
    }
    label = f"batch {batch.batch}" if batch.batch != UNKNOWN else f"batch of turn {batch.sequence}"
    yield _slice(label, track, at, batch.fetch, facts)
    for stage in ("dataset", "transform", "collate"):
        took: int = getattr(batch, stage)
        if took:
            yield _slice(stage, track, at, took, {})
        at += took


def _slice(name: str, track: Track, at: int, took: int, facts: Event) -> Event:
    return {
        "name": name,
        "cat": "loader",
        "ph": "X",
        "pid": track[0],
        "tid": track[1],
        "ts": at / 1000,
        "dur": took / 1000,
        "args": facts,
    }


def _counter(name: str, at: int, value: int) -> Event:
    return {"name": name, "ph": "C", "pid": _MAIN[0], "ts": at / 1000, "args": {"value": value}}


def _name(kind: str, track: Track, name: str) -> Event:
    return {"name": kind, "ph": "M", "pid": track[0], "tid": track[1], "args": {"name": name}}
