"""Everything that was measured of one loader, and its file: JSON lines, one record each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TypeAlias, get_args

from readers.errors import CorruptDatasetError
from readers.monitor.record import (
    BatchRecord,
    LatencyRecord,
    LoaderFacts,
    MemoryRecord,
    SampleRecord,
    StepRecord,
    WorkerState,
)

Entry: TypeAlias = (
    BatchRecord
    | StepRecord
    | WorkerState
    | MemoryRecord
    | SampleRecord
    | LatencyRecord
    | LoaderFacts
)
_KINDS = {kind.__name__: kind for kind in get_args(Entry)}


@dataclass(slots=True)
class Recording:
    """What was measured of one loader, each list in the order in which it was seen."""

    facts: LoaderFacts
    batches: list[BatchRecord] = field(default_factory=list)
    steps: list[StepRecord] = field(default_factory=list)
    workers: list[WorkerState] = field(default_factory=list)
    """The last state of each worker."""
    memory: list[MemoryRecord] = field(default_factory=list)
    samples: list[SampleRecord] = field(default_factory=list)
    """The slowest samples, slowest first."""
    latencies: list[LatencyRecord] = field(default_factory=list)
    """How long samples took, parts by themselves, short times first."""
    lost: int = 0
    """Batch records that were overwritten before they were read."""

    def entries(self) -> Iterator[Entry]:
        """Gives all records, the facts first."""
        yield self.facts
        yield from self.batches
        yield from self.steps
        yield from self.workers
        yield from self.memory
        yield from self.samples
        yield from self.latencies


def line_of(entry: Entry) -> str:
    """Writes a record as one line of JSON, without the end of the line."""
    return json.dumps({"kind": type(entry).__name__, **asdict(entry)})


def save_recording(path: Path, recording: Recording) -> None:
    """Writes a recording to a file."""
    path.write_text("".join(f"{line_of(entry)}\n" for entry in recording.entries()), "utf-8")


def load_recording(path: Path) -> Recording:
    """Reads a recording back; a last line that was cut is left out.

    Raises:
        CorruptDatasetError: It is no recording.
    """
    with path.open(encoding="utf-8") as lines:
        entries = list(_parse(path, lines))
    facts = [entry for entry in entries if isinstance(entry, LoaderFacts)]
    if not facts:
        raise CorruptDatasetError(f"{path} is no recording of a loader", path=str(path))
    recording = Recording(facts[-1])
    for entry in entries:
        match entry:
            case BatchRecord():
                recording.batches.append(entry)
            case StepRecord():
                recording.steps.append(entry)
            case WorkerState():
                recording.workers.append(entry)
            case MemoryRecord():
                recording.memory.append(entry)
            case SampleRecord():
                recording.samples.append(entry)
            case LatencyRecord():
                recording.latencies.append(entry)
            case LoaderFacts():
                pass
    return recording


def _parse(path: Path, lines: Iterable[str]) -> Iterator[Entry]:
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            return
        try:
            raw = json.loads(line)
            kind = _KINDS[raw.pop("kind")]
            known = {item.name for item in fields(kind)}
            yield kind(**{name: value for name, value in raw.items() if name in known})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptDatasetError(
                f"{path}, line {number}: no record of a loader ({error})", path=str(path)
            ) from error
