from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from readers.monitor.diagnosis import diagnose, headline
from readers.monitor.record import UNKNOWN, LoaderFacts, MemoryRecord, SampleRecord, WorkerState
from readers.monitor.recording import Recording
from readers.monitor.rules.remedies import deeper, unordered
from readers.monitor.thresholds import Thresholds
from readers.monitor.watch import Watch
from tests.recordings import FACTS, MS, Plant, simulate

TWO_CORES = replace(FACTS, workers=2, cores=2)


@dataclass(frozen=True)
class Case:
    """A planted cause, the rule it must give, and words that the remedy must hold."""

    rule: str
    plant: Callable[[int, int], Plant]
    remedy: str
    options: dict[str, Any] = field(default_factory=dict)


def always(**times: Any) -> Callable[[int, int], Plant]:  # noqa: ANN401 - those of Plant
    return lambda _batch, _worker: Plant(**times)


CASES = {
    "cold files": Case(
        "storage", always(dataset=90, cpu=0.3, cold=1.0), "--format lmdb", {"facts": TWO_CORES}
    ),
    "cold memory map": Case(
        "storage",
        always(dataset=90, cpu=0.4, faults=200),
        "--image resize",
        {"facts": replace(TWO_CORES, format="hdf5", dataset="/d/photos.h5")},
    ),
    "network mount": Case(
        "remote-storage",
        always(dataset=150, cpu=0.1),
        "workers=",
        {"facts": replace(FACTS, storage="nfs4")},
    ),
    "sleep": Case(
        "remote-storage", always(dataset=90, cpu=0.02), "num_workers=6", {"compute": 18.0}
    ),
    "sleep without workers": Case(
        "remote-storage",
        always(dataset=40, cpu=0.02),
        "num_workers=3",
        {"facts": replace(FACTS, workers=0)},
    ),
    "pixels on a network": Case(
        "pixels-over-network",
        always(dataset=150, cpu=0.1),
        "local SSD",
        {"facts": replace(FACTS, storage="nfs4", pixels=True, format="npy")},
    ),
    "decoding": Case("decode", always(dataset=90), "--format npy", {"facts": TWO_CORES}),
    "decoding of cold files": Case(
        "decode", always(dataset=90, cpu=0.94, cold=1.0, decode=80), "npy", {"facts": TWO_CORES}
    ),
    "transform": Case("transform", always(transform=90), "whole batches", {"facts": TWO_CORES}),
    "sleeping transform": Case(
        "transform", always(transform=90, cpu=0.1), "num_workers=6", {"facts": TWO_CORES}
    ),
    "collate": Case("collate", always(collate=90), "uint8", {"facts": TWO_CORES}),
    "rivals": Case(
        "contention",
        always(dataset=90, cpu=0.42, queued=0.58),
        "OMP_NUM_THREADS=1",
        {"facts": TWO_CORES},
    ),
    "more workers than cores": Case(
        "contention",
        always(dataset=150, cpu=0.45, queued=0.54),
        "workers=2",
        {"facts": replace(TWO_CORES, workers=6)},
    ),
    "one worker too few": Case(
        "too-few-workers",
        always(dataset=40),
        "num_workers=3",
        {"facts": replace(FACTS, workers=1)},
    ),
    "no workers": Case(
        "too-few-workers", always(dataset=20), "num_workers=2", {"facts": replace(FACTS, workers=0)}
    ),
    "slow pipe": Case("hand-off", always(), "uint8", {"transport": 15.0}),
    "one slow worker": Case(
        "imbalance",
        lambda _, worker: Plant(dataset=150, cpu=0.1) if worker == 2 else Plant(),
        "in_order=False",
    ),
    "one slow worker of two": Case(
        "imbalance",
        lambda _, worker: Plant(dataset=80, cpu=0.1) if worker else Plant(),
        "in_order=False",
        {"facts": TWO_CORES},
    ),
    "one slow batch in ten": Case(
        "head-of-line",
        lambda batch, _: Plant(dataset=300, cpu=0.02) if batch % 10 == 7 else Plant(),
        "prefetch_factor=4",
    ),
    "nothing known of the CPU": Case(
        "input-bound", always(dataset=150, cpu=None), "num_workers=8", {"compute": 1.0}
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_planted_cause_is_named_and_no_other(case: Case) -> None:
    findings = diagnose(simulate(case.plant, **case.options))
    assert [(finding.rule, finding.severity) for finding in findings] == [(case.rule, "alarm")]
    assert case.remedy in findings[0].remedy
    assert findings[0].factor is not None
    assert findings[0].factor > 1.1


@pytest.mark.parametrize("epochs", [1, 4])
@pytest.mark.parametrize(
    "facts",
    [
        FACTS,
        TWO_CORES,
        replace(FACTS, framework="paddle", persistent=False),
        replace(FACTS, framework="megengine", prefetch=UNKNOWN),
        replace(FACTS, workers=0, prefetch=UNKNOWN),
        replace(FACTS, framework="readers", threads=True),
    ],
    ids=["torch", "two", "paddle", "megengine", "none", "threads"],
)
@pytest.mark.parametrize(
    "plant",
    [
        always(dataset=0.3, transform=0.1, collate=0.1),
        always(dataset=0.2, transform=0.05, collate=0.3, cpu=0.1, cold=1.0, faults=9),
        lambda batch, _: Plant(dataset=3.0 if batch % 10 == 5 else 0.3, transform=0.2),
    ],
    ids=["light", "cold", "uneven"],
)
def test_a_loader_that_keeps_up_gives_no_finding(
    plant: Callable[[int, int], Plant], facts: LoaderFacts, epochs: int
) -> None:
    recording = simulate(plant, facts=facts, epochs=epochs, start=30.0, compute=30.0)
    assert diagnose(recording) == []
    assert headline(recording).startswith("fine")


def test_nothing_is_judged_before_there_is_enough() -> None:
    few = simulate(always(dataset=90), batches=20)
    assert diagnose(few) == []
    assert headline(few).startswith("too early")
    assert diagnose(simulate(always(dataset=90), batches=33)) != []
    many = replace(FACTS, workers=32)
    assert diagnose(simulate(always(dataset=3000), batches=120, facts=many)) == []


def test_between_the_limits_a_cause_is_a_note() -> None:
    (finding,) = diagnose(simulate(always(dataset=45), facts=TWO_CORES, compute=20))
    assert (finding.rule, finding.severity) == ("decode", "note")


def test_a_log_without_a_loop_gives_a_note_at_most() -> None:
    recording = replace(simulate(always(dataset=90)), steps=[])
    assert [(found.rule, found.severity) for found in diagnose(recording)] == [("decode", "note")]
    assert "no training loop" in headline(recording)


def test_two_causes_of_one_weight_are_both_named_the_larger_first() -> None:
    findings = diagnose(simulate(always(dataset=8, transform=60, collate=50), facts=TWO_CORES))
    assert [finding.rule for finding in findings] == ["transform", "collate"]


def test_decoding_on_a_machine_that_others_use_is_decoding_first() -> None:
    shared = simulate(always(dataset=90, cpu=0.56, queued=0.42), facts=TWO_CORES)
    assert [finding.rule for finding in diagnose(shared)] == ["decode", "contention"]


def test_slow_samples_are_listed() -> None:
    recording = simulate(
        lambda batch, _: Plant(dataset=300, cpu=0.02) if batch % 10 == 7 else Plant()
    )
    recording.samples.extend(
        SampleRecord(
            index=56 + 80 * number, key=f"huge/{number}", worker=3, took=290 * MS, read=UNKNOWN
        )
        for number in range(10)
    )
    (finding,) = diagnose(recording)
    assert finding.rule == "slow-samples"
    assert "sample 56 huge/0" in str(finding.evidence["samples"])


def state(
    *, seen: int = 0, stage: str = "dataset", alive: bool = True, died: bool = False
) -> WorkerState:
    return WorkerState(
        worker=1,
        pid=77,
        thread=77,
        stage=stage,
        since=0,
        seen=seen,
        batches=9,
        alive=alive,
        died=died,
    )


@pytest.mark.parametrize(
    ("worker", "rule"),
    [
        (state(seen=31_000 * MS), "stuck"),
        (state(seen=1 * MS, alive=False, died=True), "died"),
        (state(seen=900_000 * MS, alive=False), None),
        (state(seen=29_000 * MS), None),
        (state(seen=900_000 * MS, stage="idle"), None),
        (state(seen=900_000 * MS, stage="idle", alive=False), None),
    ],
    ids=["stuck", "killed", "ended amid a batch", "slow", "waiting", "ended"],
)
def test_a_worker_that_stands_still(worker: WorkerState, rule: str | None) -> None:
    recording = simulate(always(dataset=1), batches=5)
    recording.workers.append(worker)
    findings = diagnose(recording)
    assert [finding.rule for finding in findings] == ([rule] if rule else [])
    if rule == "stuck":
        assert "packer monitor stacks 77" in findings[0].remedy


def test_a_slow_loader_is_not_stuck() -> None:
    recording = simulate(always(dataset=4000), compute=20000)
    recording.workers.append(state(seen=60_000 * MS))
    assert diagnose(recording) == []


def grown(sizes: list[int]) -> Recording:
    recording = simulate(always(dataset=1), batches=1200)
    last = recording.batches[-1].ended
    recording.memory.extend(
        MemoryRecord(
            stamp=last * number // (len(sizes) - 1),
            worker=1,
            pid=1001,
            unique=size << 20,
            proportional=size << 20,
        )
        for number, size in enumerate(sizes)
    )
    return recording


@pytest.mark.parametrize(
    ("megabytes", "rules"),
    [
        ([100, 115, 130, 145, 160, 175, 190], ["memory-growth"]),
        ([20, 80, 100, 101, 100, 101, 101], []),
        ([17, 30, 44, 60, 62, 62, 62, 62, 62], []),
        ([100, 101, 102, 103, 104, 105, 106], []),
    ],
    ids=["growing", "warming up", "copied on write", "steady"],
)
def test_memory_that_goes_on_growing(megabytes: list[int], rules: list[str]) -> None:
    assert [finding.rule for finding in diagnose(grown(megabytes))] == rules


def test_shared_memory_is_told_of_with_numbers_after_one_batch() -> None:
    recording = simulate(always(nbytes=9_000_000), batches=1, free=64_000_000)
    (finding,) = diagnose(recording)
    assert finding.rule == "shared-memory"
    assert finding.evidence["need_bytes"] == 81_000_000
    assert finding.evidence["capacity_bytes"] == 64_000_000
    assert "at most 4 batches" in finding.remedy
    threads = replace(FACTS, threads=True)
    assert not diagnose(
        simulate(always(nbytes=9_000_000), batches=1, free=64_000_000, facts=threads)
    )


def test_ready_batches_are_no_lack_of_shared_memory() -> None:
    recording = simulate(always(dataset=1, nbytes=10_000_000), free=40_000_000)
    recording.steps[:] = [
        replace(step, shared_memory_free=120_000_000 - 10_000_000 * step.ready)
        for step in recording.steps
    ]
    assert diagnose(recording) == []


def test_late_first_batches() -> None:
    recording = simulate(always(dataset=1), batches=20, epochs=3, start=2000.0)
    assert [(finding.rule, finding.severity) for finding in diagnose(recording)] == [
        ("first-batch", "alarm")
    ]
    started = replace(recording, facts=replace(FACTS, persistent=False))
    assert "persistent_workers=True" in diagnose(started)[0].remedy
    paddle = replace(recording, facts=replace(FACTS, persistent=False, framework="paddle"))
    assert "0.5 s an epoch in Paddle" in diagnose(paddle)[0].remedy
    megengine = replace(recording, facts=replace(FACTS, persistent=False, framework="megengine"))
    assert "persistent_workers" not in diagnose(megengine)[0].remedy
    assert diagnose(simulate(always(dataset=1), batches=20, epochs=1, start=2000.0)) == []


@pytest.mark.parametrize(
    ("framework", "depth", "order"),
    [
        ("torch", "prefetch_factor=4", "in_order=False"),
        ("paddle", "prefetch_factor=4", "`MonitoredLoader(in_order=False)`"),
        ("megengine", "`MonitoredLoader(prefetch=4)`", "`MonitoredLoader(in_order=False)`"),
        ("readers", "prefetch=4", "in_order=False"),
    ],
)
def test_a_remedy_names_options_that_the_framework_has(
    framework: str, depth: str, order: str
) -> None:
    facts = replace(FACTS, framework=framework)
    assert (deeper(facts), unordered(facts)) == (depth, order)


def test_paddle_persistent_workers() -> None:
    facts = replace(FACTS, framework="paddle")
    recording = simulate(always(dataset=1), batches=20, epochs=3, start=525.0, facts=facts)
    assert [finding.rule for finding in diagnose(recording)] == ["paddle-persistent"]
    stream = replace(facts, length=UNKNOWN)
    assert [
        finding.rule
        for finding in diagnose(simulate(always(dataset=1), batches=9, facts=stream, start=1.0))
    ] == ["paddle-persistent-stream"]


def test_an_alarm_is_raised_once_and_cleared_once() -> None:
    watch = Watch(Thresholds())
    bad = simulate(always(dataset=90), facts=TWO_CORES)
    between = simulate(always(dataset=45), facts=TWO_CORES)
    good = simulate(always(dataset=5), facts=TWO_CORES)
    changes = [watch.look(window) for window in (good, between, bad, bad, between, good, between)]
    assert [[finding.rule for finding in change.raised] for change in changes] == [
        [], [], ["decode"], [], [], [], [],
    ]  # fmt: skip
    assert [change.cleared for change in changes] == [(), (), (), (), (), ("decode",), ()]


def test_nothing_measured_is_no_cause_for_alarm() -> None:
    assert diagnose(Recording(FACTS)) == []
    assert headline(Recording(FACTS)).startswith("no training loop")
