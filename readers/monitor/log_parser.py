"""Reads the lines of a monitor's log back, in any of its styles, among whatever else is there."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Final

from readers.errors import SourceError
from readers.monitor.facts import usable_cores
from readers.monitor.record import UNKNOWN, BatchRecord, LoaderFacts
from readers.monitor.recording import Recording

_SECOND: Final = 1_000_000_000
_DEFAULT: Final = re.compile(r"\[pid:(\d{1,10})\] (.*\bdataset_time:.*)")
_DEFAULT_FIELD: Final = re.compile(r"(\w+):(-?\d{1,18}(?:\.\d{1,9})?)s?(?=\s|$)")
_MEGENGINE: Final = re.compile(
    r"pid: (\d{1,10}), (?:idx: (\d{1,18}), )?dataset_time: (\d{1,9}\.\d{1,9}), "
    r"transform_time: (\d{1,9}\.\d{1,9}), collate_time: (\d{1,9}\.\d{1,9})"
)
_TIMES: Final = {
    "dataset_time": "dataset",
    "transform_time": "transform",
    "collate_time": "collate",
    "read": "read",
    "decode": "decode",
    "cpu": "cpu",
    "runq": "queued",
}
_COUNTS: Final = {
    "idx": "batch",
    "worker": "worker",
    "n": "samples",
    "rchar": "read_calls_bytes",
    "read_bytes": "storage_bytes",
    "majflt": "major_faults",
    "bytes": "nbytes",
    "epoch": "epoch",
    "seq": "sequence",
}
_BLANK: Final = BatchRecord(**{item.name: UNKNOWN for item in fields(BatchRecord)})


def parse_log(lines: Iterable[str]) -> Recording:
    """Reads the batches of a log; lines that aren't the monitor's are passed over.

    Args:
        lines: Of any of the styles of `readers.monitor.log`, also mixed.

    Returns:
        Batches without stamps, which a log doesn't tell except in JSON, and facts that are derived
        from them.

    Raises:
        SourceError: No line is the monitor's.
    """
    batches: list[BatchRecord] = []
    made: Counter[int] = Counter()
    for line in lines:
        record = _parse(line.rstrip("\n"))
        if record is None:
            continue
        if record.sequence == UNKNOWN:
            record = replace(record, sequence=made[record.pid])
        made[record.pid] += 1
        batches.append(record)
    if not batches:
        raise SourceError("no line of a loader monitor among these: is it the right log?")
    return Recording(_facts(batches), batches=batches)


def _parse(line: str) -> BatchRecord | None:
    if (found := _DEFAULT.search(line)) is not None:
        return _from_fields(int(found[1]), dict(_DEFAULT_FIELD.findall(found[2])))
    if (found := _MEGENGINE.search(line)) is not None:
        pid, number, dataset, transform, collate = found.groups()
        return replace(
            _BLANK,
            pid=int(pid),
            batch=UNKNOWN if number is None else int(number),
            dataset=_nanoseconds(dataset),
            transform=_nanoseconds(transform),
            collate=_nanoseconds(collate),
        )
    return _from_json(line) if line.startswith("{") else None


def _from_fields(pid: int, found: Mapping[str, str]) -> BatchRecord | None:
    if not {"dataset_time", "transform_time", "collate_time"} <= found.keys():
        return None
    times = {_TIMES[name]: _nanoseconds(text) for name, text in found.items() if name in _TIMES}
    counts = {
        _COUNTS[name]: int(text)
        for name, text in found.items()
        if name in _COUNTS and "." not in text
    }
    return replace(_BLANK, pid=pid, **times, **counts)


def _from_json(line: str) -> BatchRecord | None:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if raw.pop("kind", None) != BatchRecord.__name__:
        return None
    names = {item.name for item in fields(BatchRecord)}
    if not names <= raw.keys() or not all(type(raw[name]) is int for name in names):
        return None
    return BatchRecord(**{name: raw[name] for name in names})


def _nanoseconds(seconds: str) -> int:
    return round(float(seconds) * _SECOND)


def _facts(batches: list[BatchRecord]) -> LoaderFacts:
    sizes = Counter(record.samples for record in batches if record.samples != UNKNOWN)
    by_epoch: defaultdict[int, set[int]] = defaultdict(set)
    for record in batches:
        by_epoch[record.epoch].add(record.pid)
    return LoaderFacts(
        framework="iterable",
        workers=max(len(pids) for pids in by_epoch.values()),
        threads=False,
        batch_size=sizes.most_common(1)[0][0] if sizes else UNKNOWN,
        prefetch=UNKNOWN,
        in_order=True,
        persistent=False,
        length=UNKNOWN,
        cores=usable_cores(),
        storage="",
        format="",
        dataset="",
        pixels=False,
    )
