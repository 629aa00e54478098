"""The log: its three styles, whose turn it is, and reading it back."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields, replace

import pytest

from readers.errors import OptionError, SourceError
from readers.monitor.log import BatchLog, Style, default_line, megengine_line
from readers.monitor.log_parser import parse_log
from readers.monitor.record import UNKNOWN, BatchRecord, StepRecord
from readers.monitor.recording import line_of

RECORD = BatchRecord(
    batch=256,
    epoch=0,
    worker=1,
    pid=1234,
    thread=1234,
    sequence=128,
    samples=32,
    began=5_000_000_000,
    dataset=120_000_000,
    read=30_000_000,
    decode=85_000_000,
    transform=80_000_000,
    collate=20_000_000,
    cpu=170_000_000,
    queued=2_000_000,
    read_calls_bytes=3_700_000,
    storage_bytes=3_670_016,
    major_faults=0,
    nbytes=4_816_896,
)
NOT_LOGGED = ("began", "thread")


def test_the_default_line() -> None:
    assert default_line(RECORD) == (
        "[pid:1234] idx:256 dataset_time:0.120000s transform_time:0.080000s "
        "collate_time:0.020000s worker:1 n:32 read:0.030000s decode:0.085000s cpu:0.170000s "
        "runq:0.002000s blocked:0.028000s rchar:3700000 read_bytes:3670016 majflt:0 "
        "bytes:4816896 epoch:0 seq:128"
    )


def test_megengines_line_is_the_real_one() -> None:
    real = re.compile(
        r"pid: \d+, idx: \d+, dataset_time: \d+\.\d{6}, transform_time: \d+\.\d{6}, "
        r"collate_time: \d+\.\d{6}"
    )
    assert real.fullmatch(megengine_line(RECORD))
    assert megengine_line(replace(RECORD, batch=UNKNOWN)).startswith("pid: 1234, dataset_time: ")


def test_every_worker_gets_its_turn() -> None:
    lines: list[str] = []
    log = BatchLog(lines.append, style="default", every=10)
    for number in range(100):
        worker = number % 4
        log.batch(replace(RECORD, batch=number, pid=worker, sequence=number // 4))
    assert Counter(line[:8] for line in lines) == {f"[pid:{pid}] ": 3 for pid in range(4)}


@pytest.mark.parametrize("first", ["batch", "step"])
def test_megengines_second_line_tells_the_hand_off(first: str) -> None:
    lines: list[str] = []
    log = BatchLog(lines.append, style="megengine")
    step = StepRecord(
        step=256,
        epoch=0,
        batch=256,
        began=RECORD.ended - 1,
        wait=5_001,
        compute=UNKNOWN,
        samples=32,
        ready=1,
        shared_memory_free=0,
    )
    if first == "batch":
        log.batch(RECORD)
        log.step(step)
    else:
        log.step(step)
        log.batch(RECORD)
    assert re.fullmatch(r"pid: \d+, idx: 256, IPC_time: 0\.000005", lines[1])


def test_options_are_checked() -> None:
    style: Style = "tabular"  # type: ignore[assignment]
    with pytest.raises(OptionError, match="default, megengine, json"):
        BatchLog(print, style=style)
    with pytest.raises(OptionError, match="1 or more"):
        BatchLog(print, every=0)


def test_a_default_log_comes_back_but_for_stamps() -> None:
    blind = replace(
        RECORD,
        **{
            item.name: UNKNOWN
            for item in fields(RECORD)
            if item.name not in {"pid", "dataset", "transform", "collate", "sequence", "thread"}
        },
    )
    for record in (RECORD, blind):
        (back,) = parse_log([f"2026-01-01 INFO: {default_line(record)}\n"]).batches
        assert back == replace(record, **dict.fromkeys(NOT_LOGGED, UNKNOWN))


def test_a_json_log_comes_back_whole() -> None:
    assert parse_log([line_of(RECORD)]).batches == [RECORD]


def test_a_megengine_log_with_other_lines_comes_back() -> None:
    log = """\
pid: 3866, idx: 0, dataset_time: 0.008553, transform_time: 0.004575, collate_time: 0.000501
pid: 3859, idx: 0, IPC_time: 0.004538
epoch 1 loss 0.25 {"kind": 1}
{"kind": "BatchRecord", "batch": "no"}
{"kind": [
[]
pid: 3866, idx: 10, dataset_time: 0.008634, transform_time: 0.004448, collate_time: 0.000068
pid: 3870, dataset_time: 0.008634, transform_time: 0.004448, collate_time: 0.000068
[pid:1] idx:1 dataset_time:soon
pid: 3866, idx: 20, dataset_ti"""
    recording = parse_log(log.splitlines())
    assert [record.batch for record in recording.batches] == [0, 10, UNKNOWN]
    assert [record.sequence for record in recording.batches] == [0, 1, 0]
    assert recording.batches[0].dataset == 8_553_000
    assert recording.facts.workers == 2


def test_the_quoted_line_is_understood() -> None:
    line = "[pid:1234] idx:256 dataset_time:0.12s transform_time:0.08s collate_time:0.02s"
    (record,) = parse_log([line]).batches
    assert (record.dataset, record.transform, record.collate) == (
        120_000_000,
        80_000_000,
        20_000_000,
    )


def test_no_log_at_all() -> None:
    with pytest.raises(SourceError, match="the right log"):
        parse_log(["nothing", "to see", "{}", "[1]"])
