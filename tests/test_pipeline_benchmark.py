"""The benchmark's contestants that are ours, in a race of few pictures."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.contest import Contest, Goal
from benchmarks.contestant import Interpreters, Pantry, Script
from benchmarks.pipelines.serving import Turn
from benchmarks.pipelines.task import Task
from benchmarks.race import BUSY, Course, Entry, race
from benchmarks.tree import made_tree

PIXELS = ("--format", "npy", "--image", "decode", "--size", "256")
TASK = Task("", batch=4, workers=2, resize="linear")


@pytest.fixture
def course(tmp_path: Path) -> Course:
    interpreters = Interpreters()
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    turn = Turn(batches=2, seconds=0)
    return Course(made_tree(tmp_path, 12), Pantry(inputs, interpreters), interpreters, 1, turn)


def no_goals(_: Contest, __: object) -> tuple[Goal, ...]:
    return ()


def test_all_make_what_is_asked_and_who_is_missing_is_named(course: Course) -> None:
    entries = [
        Entry("loader", Script("ours", ("--format", "lmdb"))),
        Entry("torch", Script("ours_torch", ("--format", "lmdb"), maker="ours")),
        Entry("peer", Script("nobody_has_it", peer=True)),
    ]
    contest = race(course, "t", entries, TASK, goals=no_goals, baselines=("loader",))
    assert list(contest.costs) == ["loader", "torch"]
    assert all(0 < cost.seconds < 60 for costs in contest.costs.values() for cost in costs)
    assert all(column.keys() == contest.costs.keys() for column in contest.columns.values())
    (absent,) = (remark for remark in contest.remarks if remark.startswith("left out"))
    assert "peer" in absent
    assert "nobody_has_it" in absent


def test_a_loop_takes_no_more_than_its_pace(course: Course) -> None:
    slow = replace(course, turn=Turn(batches=2, seconds=0, pace=40))
    contest = race(
        slow, "t", [Entry("pixels", Script("ours", PIXELS))], TASK, goals=no_goals, baselines=()
    )
    assert 0 < contest.columns[BUSY]["pixels"] <= 1
    assert contest.samples / contest.seconds("pixels") <= 40


def test_a_failure_of_ours_is_an_error(course: Course) -> None:
    greedy = replace(TASK, batch=64)
    with pytest.raises(Exception, match="fewer pictures than a batch"):
        race(
            course,
            "t",
            [Entry("loader", Script("ours", ("--format", "lmdb")))],
            greedy,
            goals=no_goals,
            baselines=(),
        )
