"""Our loader: what is in the batches, in which order, and what is told when it goes wrong."""

from __future__ import annotations

import itertools
import json
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from packer.convert import convert
from readers.dataset import Dataset
from readers.decode import decode
from readers.errors import OptionError
from readers.loader import MonitoredLoader, WorkerKind
from readers.loading.transform import ImageTransform
from readers.monitor.attach import LoaderMonitor
from readers.opening import open_dataset
from readers.sample import Pixels, Sample
from readers.storage import Kind, Storage
from tests.trees import MemorySource, a_sample, jpeg

_ROWS = 50
_KINDS: tuple[WorkerKind, ...] = ("thread", "spawn", "forkserver", "fork")

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """A dataset of pictures of mixed sizes in three classes."""
    samples = [
        a_sample(number, f"k/{number}", jpeg(number, height=16 + number % 3))._replace(
            label=number % 3
        )
        for number in range(_ROWS)
    ]
    path = tmp_path_factory.mktemp("photos") / "packed"
    convert(MemorySource(samples, tuple("abc")), path, format="webdataset")
    with open_dataset(path) as opened:
        yield opened


def corner(pixels: Pixels) -> Pixels:
    return pixels[:8, :8]


def key_and_corner(sample: Sample) -> dict[str, object]:
    return {"key": sample.key, "views": [decode(sample.image)[:4, :4], np.float32(sample.label)]}


class Unpicklable(Exception):  # noqa: N818 - a user's own
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} {two}")


def fail_at_7(value: int) -> int:
    if value == 7:
        raise KeyError("seven")
    return value


def fail_unpicklable(value: int) -> int:
    raise Unpicklable(value, value)


def stop(value: int) -> int:
    raise StopIteration(value)


def _numbers(batches: Any) -> list[int]:  # noqa: ANN401 - the loader's own type
    return [int(value) for batch in batches for value in batch]


@pytest.mark.parametrize(
    ("kind", "workers"), [("thread", 0), *((kind, 3) for kind in _KINDS), ("fork", 0)]
)
def test_batches_are_the_samples_in_order(photos: Dataset, kind: WorkerKind, workers: int) -> None:
    with MonitoredLoader(
        photos, 8, transform=ImageTransform(corner), workers=workers, worker_kind=kind
    ) as loader:
        for _ in range(2):
            batches = list(loader)
            assert [len(labels) for _, labels in batches] == [8] * 6 + [2]
            assert len(loader) == 7
            images = np.concatenate([images for images, _ in batches])
            labels = np.concatenate([labels for _, labels in batches])
            assert images.dtype == np.uint8
            assert labels.dtype == np.int64
            assert labels.tolist() == [row % 3 for row in range(_ROWS)]
            wanted = np.stack(
                [corner(decode(sample.image)) for sample in photos.read_many(range(_ROWS))]
            )
            assert np.array_equal(images, wanted)


def test_pictures_of_mixed_sizes_come_as_a_list(photos: Dataset) -> None:
    images, labels = next(iter(MonitoredLoader(photos, 5)))
    assert [image.shape for image in images] == [(16 + row % 3, 32, 3) for row in range(5)]
    assert labels.tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("kind", ["thread", "fork"])
def test_batches_are_built_as_the_samples_are(photos: Dataset, kind: WorkerKind) -> None:
    with MonitoredLoader(photos, 3, transform=key_and_corner, worker_kind=kind) as loader:
        batch = next(iter(loader))
    assert batch["key"] == ["k/0", "k/1", "k/2"]
    views, numbers = batch["views"]
    assert views.shape == (3, 4, 4, 3)
    assert numbers.dtype == np.float32


class Point(NamedTuple):
    x: object
    y: object


@pytest.mark.parametrize(
    ("samples", "wanted"),
    [
        ([1, 2], np.array([1, 2])),
        ([1.5, 2.0], np.array([1.5, 2.0])),
        ([True, False], np.array([True, False])),
        ([1, None], [1, None]),
        (["a", "b"], ["a", "b"]),
        ([(1, "a"), (2, "b")], (np.array([1, 2]), ["a", "b"])),
        ([(1,), (1, 2)], [(1,), (1, 2)]),
        (
            [Point(1, {"z": 2}), Point(3, {"z": 4})],
            Point(np.array([1, 3]), {"z": np.array([2, 4])}),
        ),
        ([{"a": 1}, {"b": 1}], [{"a": 1}, {"b": 1}]),
        ([np.zeros(2), np.zeros(2), np.zeros(3)], [np.zeros(2), np.zeros(2), np.zeros(3)]),
        ([np.array(1, np.int8), np.array(2, np.int8)], np.array([1, 2], np.int8)),
        ([(), ()], ()),
    ],
)
def test_structures(samples: list[Any], wanted: Any) -> None:  # noqa: ANN401 - any
    (batch,) = MonitoredLoader(samples, len(samples), workers=0)
    np.testing.assert_equal(batch, wanted)
    assert type(batch) is type(wanted)
    if isinstance(wanted, np.ndarray):
        assert batch.dtype == wanted.dtype


def test_a_transform_can_write_into_the_batch() -> None:
    class Fill:
        def __init__(self) -> None:
            self.slots: list[Any] = []

        def __call__(self, value: int, /) -> Any:  # noqa: ANN401 - any
            return np.full(4, value), value

        def write_into(self, value: int, slots: Any, /) -> object:  # noqa: ANN401 - any
            self.slots.append(slots[0])
            slots[0][...] = value
            return slots[0], value

    fill = Fill()
    (batch,) = MonitoredLoader(list(range(5)), 5, transform=fill, workers=0)
    assert batch[0][:, 0].tolist() == batch[1].tolist() == list(range(5))
    assert all(np.shares_memory(slot, batch[0]) for slot in fill.slots)
    assert len(fill.slots) == 4


def test_a_collate_of_the_users_gets_the_list() -> None:
    batches = list(MonitoredLoader(list(range(5)), 2, collate=sum))
    assert batches == [1, 5, 4]


@pytest.mark.parametrize("kind", ["thread", "spawn"])
@pytest.mark.parametrize(
    ("samples", "batch_size", "wanted"), [(0, 4, []), (1, 4, [1]), (3, 9, [3])]
)
def test_small_datasets(kind: WorkerKind, samples: int, batch_size: int, wanted: list[int]) -> None:
    with MonitoredLoader(list(range(samples)), batch_size, worker_kind=kind) as loader:
        assert [len(batch) for batch in loader] == wanted
        assert len(loader) == len(wanted)


def test_every_epoch_has_its_own_order_and_loaders_agree() -> None:
    one, two = (MonitoredLoader(list(range(40)), 7, shuffle=True, seed=5) for _ in range(2))
    epochs = [_numbers(one) for _ in range(3)]
    assert all(sorted(epoch) == list(range(40)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    two.set_epoch(2)
    assert _numbers(two) == epochs[2]
    two.set_epoch(0)
    assert _numbers(two) == epochs[0]


@pytest.mark.parametrize("in_order", [True, False])
def test_training_is_resumed_to_the_sample(in_order: bool) -> None:  # noqa: FBT001
    def make() -> MonitoredLoader:
        return MonitoredLoader(
            list(range(101)), 4, shuffle=True, workers=3, in_order=in_order, rank=1, world_size=2
        )

    wanted = [sorted(_numbers(loader)) for loader in [make()] for _ in range(3)]
    loader = make()
    list(loader)
    found: list[int] = []
    for _ in range(5):
        found += _numbers(itertools.islice(loader, 2))
        saved = json.dumps(loader.state_dict())
        loader = make()
        loader.load_state_dict(json.loads(saved))
        assert json.dumps(loader.state_dict()) == saved
        loader.set_epoch(1)  # as a training loop does in each epoch: the place stays
    found += _numbers(loader)
    assert sorted(found) == wanted[1]
    assert sorted(_numbers(loader)) == wanted[2]


def test_a_slow_batch_holds_up_no_other_out_of_order() -> None:
    release = threading.Event()

    def wait_for_the_others(value: int) -> int:
        if value == 0:
            release.wait(10)
        return value

    loader = MonitoredLoader(
        list(range(8)), 1, transform=wait_for_the_others, workers=2, in_order=False
    )
    found = []
    for batch in loader:
        found.append(int(batch[0]))
        if len(found) == 7:
            assert loader.state_dict()["beyond"] == list(range(1, 8))
            release.set()
    assert found[-1] == 0
    assert sorted(found) == list(range(8))


def test_batches_of_the_users() -> None:
    given = [[3, 1], [2], [0, 0, 0]]
    loader = MonitoredLoader([10, 11, 12, 13], batches=given)
    assert [batch.tolist() for batch in loader] == [[13, 11], [12], [10, 10, 10]]
    assert len(loader) == 3
    with pytest.raises(OptionError, match="leave these out"):
        MonitoredLoader([1], 4, batches=given)


@pytest.mark.parametrize(("kind", "workers"), [("thread", 0), ("thread", 2), ("fork", 2)])
def test_an_error_is_raised_as_it_is_with_the_sample(kind: WorkerKind, workers: int) -> None:
    with MonitoredLoader(
        list(range(20)), 3, transform=fail_at_7, workers=workers, worker_kind=kind
    ) as loader:
        batches = iter(loader)
        assert [next(batches).tolist() for _ in range(2)] == [[0, 1, 2], [3, 4, 5]]
        with pytest.raises(KeyError, match="seven") as caught:
            next(batches)
        notes = caught.value.__dict__["__notes__"]
        assert notes[0] == "while transforming sample 7, batch 2 of epoch 0"
        assert "fail_at_7" in "".join(notes[1:]) or kind == "thread" or workers == 0
        # The loader is as good as new.
        assert next(iter(loader)).tolist() == [0, 1, 2]


def test_a_damaged_sample_is_named_by_its_key(photos: Dataset) -> None:
    damaged = [sample._replace(image=b"\xff\xd8\xff") for sample in photos.read_many(range(_ROWS))]
    with pytest.raises(ValueError, match=r".") as caught:
        list(MonitoredLoader(damaged, 4))
    assert "'k/0'" in caught.value.__dict__["__notes__"][0]


@pytest.mark.parametrize("kind", ["thread", "fork"])
def test_odd_errors_end_the_loop_too(kind: WorkerKind) -> None:
    with (
        MonitoredLoader([1, 2], 1, transform=stop, worker_kind=kind) as loader,
        pytest.raises(RuntimeError, match="StopIteration"),
    ):
        list(loader)
    with (
        MonitoredLoader([1, 2], 1, transform=fail_unpicklable, worker_kind=kind) as loader,
        pytest.raises((Unpicklable, RuntimeError), match="1 1"),
    ):
        list(loader)


def test_work_ahead_is_bounded() -> None:
    seen: list[int] = []

    def see(value: int) -> int:
        seen.append(value)
        return value

    loader = MonitoredLoader(list(range(100)), 1, transform=see, workers=2, prefetch=3)
    batches = iter(loader)
    next(batches)
    deadline = time.monotonic() + 5
    while len(seen) < 7 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    assert len(seen) == 7  # the one that was taken, and two workers' three


def test_a_batch_keeps_its_memory_and_is_given_back_with_it(photos: Dataset) -> None:
    loader = MonitoredLoader(photos, 8, transform=ImageTransform(corner))
    kept = [images for images, _ in loader]
    copies = [images.copy() for images in kept]
    list(loader)
    assert all(np.array_equal(image, copy) for image, copy in zip(kept, copies, strict=True))
    assert not any(np.shares_memory(*pair) for pair in itertools.combinations(kept, 2))
    given_back = []
    for images, _ in loader:
        given_back.append(weakref.ref(images))
    del images
    assert [found for reference in given_back if (found := reference()) is not None] == []


def test_several_loaders_at_once_and_one_pass_of_each() -> None:
    one, two = (MonitoredLoader(list(range(30)), 4, workers=2) for _ in range(2))
    pairs = [(int(a[0]), int(b[0])) for a, b in zip(one, two, strict=True)]
    assert [a for a, _ in pairs] == [b for _, b in pairs] == list(range(0, 30, 4))
    first = iter(one)
    next(first)
    second = iter(one)
    assert next(second).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="another pass"):
        next(first)


@pytest.mark.parametrize(("output", "kind"), [("torch", "Tensor"), ("paddle", "Tensor")])
@pytest.mark.parametrize("worker_kind", ["thread", "fork"])
def test_tensors(photos: Dataset, output: Any, kind: str, worker_kind: WorkerKind) -> None:  # noqa: ANN401
    pytest.importorskip(output)
    with MonitoredLoader(
        photos,
        4,
        transform=ImageTransform(corner),
        output=output,
        worker_kind=worker_kind,
    ) as loader:
        images, labels = next(iter(loader))
    assert type(images).__name__ == type(labels).__name__ == kind
    wanted = np.stack([corner(decode(photos[row].image)) for row in range(4)])
    assert np.array_equal(images.numpy(), wanted)
    assert labels.numpy().tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("output", ["torch", "paddle"])
def test_pinned_memory_without_a_device_is_a_warning(output: Any) -> None:  # noqa: ANN401
    pytest.importorskip(output)
    if Path("/dev/nvidia0").exists():
        pytest.skip("there is a device")
    with pytest.warns(UserWarning, match="pin_memory has no effect") as told:
        loader = MonitoredLoader([1, 2], 2, output=output, pin_memory=True, workers=0)
    assert told[0].filename == __file__
    (batch,) = loader
    assert batch.numpy().tolist() == [1, 2]


def test_stages_and_steps_are_measured(photos: Dataset) -> None:
    spent: Counter[str] = Counter()

    def take(stage: str, seconds: float) -> None:
        began = time.perf_counter_ns()
        time.sleep(seconds)
        spent[stage] += time.perf_counter_ns() - began

    def slow(sample: Sample) -> int:
        take("transform", 0.01)
        return len(sample.key)

    def slow_collate(values: Sequence[int]) -> int:
        take("collate", 0.05)
        return len(values)

    loader = MonitoredLoader(photos, 10, transform=slow, collate=slow_collate, workers=2)
    for _ in loader:
        pass
    recording = loader.recording()
    assert recording.facts.framework == "readers"
    assert recording.facts.threads
    assert recording.facts.format == "webdataset"
    assert Counter(record.samples for record in recording.batches) == {10: 5}
    assert sorted(record.batch for record in recording.batches) == list(range(5))
    assert {record.worker for record in recording.batches} == {0, 1}
    for stage, took in spent.items():
        measured = sum(getattr(record, stage) for record in recording.batches)
        assert measured == pytest.approx(took, rel=0.05)
    assert len(recording.steps) == 5
    assert "dataset" in loader.report()


def test_the_environment_turns_the_log_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PACKER_DATA_MONITOR", "1")
    loader = MonitoredLoader(list(range(6)), 2)
    list(loader)
    del loader
    *lines, verdict = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if "dataset_time" in line]) == 3
    assert verdict == "too early to judge: 2 steps seen"


def test_a_monitor_of_the_users_measures(tmp_path: Path) -> None:
    monitor = LoaderMonitor(run=tmp_path / "run")
    loader = MonitoredLoader(list(range(6)), 2, monitor=monitor)
    list(loader)
    assert len(monitor.recording().batches) == 3
    monitor.close()
    assert (tmp_path / "run").is_dir()


def test_senseless_options_are_refused() -> None:
    with pytest.raises(OptionError, match="workers is -1"):
        MonitoredLoader([1], 1, workers=-1)
    with pytest.raises(OptionError, match="worker_kind 'fibre'"):
        MonitoredLoader([1], 1, worker_kind="fibre")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="output 'jax'"):
        MonitoredLoader([1], 1, output="jax")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="pin_memory"):
        MonitoredLoader([1], 1, pin_memory=True)
    with pytest.raises(OptionError, match="batch_size"):
        MonitoredLoader([1])


@pytest.mark.parametrize(
    ("kind", "told"), [("local", "full shuffle"), ("network", "block shuffle")]
)
def test_an_order_that_is_chosen_by_the_storage_is_told(
    photos: Dataset,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: Kind,
    told: str,
) -> None:
    monkeypatch.setattr(Dataset, "storage", lambda _: Storage(kind=kind, file_system="x"))
    with MonitoredLoader(photos, 5, shuffle="auto", transform=key_and_corner, workers=0) as loader:
        found = [key for batch in loader for key in batch["key"]]
    assert sorted(found) == sorted(f"k/{row}" for row in range(_ROWS))
    assert told in caplog.text
    with pytest.raises(OptionError, match="shuffle"):
        MonitoredLoader(photos, 5, shuffle="blocks")  # type: ignore[arg-type]  # that is the point
