"""Our readers in PyTorch's own loader."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from packer.convert import convert
from readers.dataset import Dataset
from readers.decode import decode
from readers.draws import current_draws
from readers.loading.transform import ImageTransform
from readers.opening import open_dataset
from readers.sample import Pixels
from tests.trees import MemorySource, a_sample, jpeg

torch = pytest.importorskip("torch")
adapter = pytest.importorskip("readers.torch")

_ROWS = 37
_LIGHT: list[dict[str, Any]] = [
    {"num_workers": 0},
    {"num_workers": 3, "multiprocessing_context": "fork", "prefetch_factor": 4, "in_order": False},
]
_HEAVY: dict[str, Any] = {
    "num_workers": 2,
    "multiprocessing_context": "spawn",
    "persistent_workers": True,
}

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning"),
]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    samples = [
        a_sample(number, f"k/{number}", jpeg(number))._replace(label=number % 3)
        for number in range(_ROWS)
    ]
    path = tmp_path_factory.mktemp("photos") / "packed"
    convert(MemorySource(samples, tuple("abc")), path, format="webdataset")
    with open_dataset(path) as opened:
        yield opened


def corner(pixels: Pixels) -> Pixels:
    return pixels[:8, :8]


def set_threads(worker: int) -> None:
    torch.set_num_threads(worker + 1)


def _loader(dataset: Any, **options: Any) -> Any:  # noqa: ANN401 - torch's own types
    return torch.utils.data.DataLoader(
        dataset, timeout=60 * bool(options["num_workers"]), **options
    )


@pytest.mark.parametrize("options", [*_LIGHT, _HEAVY])
def test_by_index_it_is_the_dataset(photos: Dataset, options: dict[str, Any]) -> None:
    dataset = adapter.MapDataset(photos, ImageTransform(corner))
    loader = _loader(dataset, batch_size=5, pin_memory=True, worker_init_fn=set_threads, **options)
    wanted = [
        (corner(decode(sample.image)), sample.label) for sample in photos.read_many(range(_ROWS))
    ]
    for _ in range(2):
        batches = list(loader)
        assert sum(len(labels) for _, labels in batches) == _ROWS
        if options.get("in_order", True):
            images = torch.cat([images for images, _ in batches]).numpy()
            assert np.array_equal(images, np.stack([image for image, _ in wanted]))
            assert torch.cat([labels for _, labels in batches]).tolist() == [x for _, x in wanted]


def test_a_batch_is_read_at_once_and_equals_single_reads(photos: Dataset) -> None:
    dataset = adapter.MapDataset(photos)
    rows = [5, 1, 1, 30]
    for (pixels, label), row in zip(dataset.__getitems__(rows), rows, strict=True):
        one, other = dataset[row]
        assert np.array_equal(pixels, one)
        assert type(label) is int
        assert label == other == photos[row].label


def test_it_works_with_torchs_own_samplers_and_subsets(photos: Dataset) -> None:
    dataset = adapter.MapDataset(photos, ImageTransform(corner))
    part = torch.utils.data.Subset(dataset, list(range(0, _ROWS, 2)))
    batches = list(_loader(part, batch_size=4, shuffle=True, num_workers=0))
    assert sum(len(labels) for _, labels in batches) == len(part)


@pytest.mark.parametrize(
    ("samples", "options"),
    [*((samples, options) for samples in (0, 1, 40, 1003) for options in _LIGHT), (1003, _HEAVY)],
)
def test_a_stream_gives_each_sample_to_one_worker(samples: int, options: dict[str, Any]) -> None:
    dataset = adapter.StreamDataset(list(range(samples)), shuffle=True, seed=1)
    loader = _loader(dataset, batch_size=8, **options)
    epochs = []
    for epoch in range(2):
        dataset.set_epoch(epoch)
        epochs.append([int(value) for batch in loader for value in batch])
        assert sorted(epochs[-1]) == list(range(samples))
    assert epochs[0] != epochs[1] or samples < 2


def test_ranks_share_a_stream_evenly() -> None:
    ranks = [
        adapter.StreamDataset(list(range(1003)), shuffle=True, rank=rank, world_size=4)
        for rank in range(4)
    ]
    found = [
        [int(value) for batch in _loader(part, num_workers=0) for value in batch] for part in ranks
    ]
    assert {len(values) for values in found} == {251}
    counts = Counter(value for values in found for value in values)
    assert sorted(counts) == list(range(1003))
    assert counts.total() == 1004


def draw(value: int) -> tuple[int, int]:
    return value, current_draws().below(1 << 60)


def _drawn(loader: Any) -> dict[int, int]:  # noqa: ANN401 - torch's own types
    pairs = [pair for values, numbers in loader for pair in zip(values, numbers, strict=True)]
    return {int(value): int(number) for value, number in pairs}


_PERSISTENT = {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": "fork"}


@pytest.mark.parametrize("make", [adapter.MapDataset, adapter.StreamDataset])
def test_once_told_the_epoch_random_numbers_depend_on_it_and_the_sample_alone(
    make: Callable[..., Any],
) -> None:
    found = []
    for options in (*_LIGHT, _PERSISTENT, _HEAVY):
        dataset = make(list(range(40)), draw, seed=3)
        loader = _loader(dataset, batch_size=4, **options)
        epochs = []
        for epoch in range(2):
            dataset.set_epoch(epoch)
            epochs.append(_drawn(loader))
        assert len({*epochs[0].values(), *epochs[1].values()}) == 80
        found.append(epochs)
    assert all(epochs == found[0] for epochs in found)


@pytest.mark.parametrize("make", [adapter.MapDataset, adapter.StreamDataset])
@pytest.mark.parametrize("options", [*_LIGHT, _PERSISTENT])
def test_untold_random_numbers_differ_between_workers_and_epochs(
    make: Callable[..., Any], options: dict[str, Any]
) -> None:
    runs = []
    for _ in range(2):
        torch.manual_seed(7)
        loader = _loader(make(list(range(40)), draw), batch_size=4, **options)
        epochs = [_drawn(loader) for _ in range(2)]
        assert len({*epochs[0].values(), *epochs[1].values()}) == 80
        runs.append(epochs)
    assert runs[0] == runs[1]


def test_untold_random_numbers_differ_between_ranks_that_were_seeded_alike() -> None:
    numbers = []
    for rank in range(2):
        torch.manual_seed(7)
        dataset = adapter.MapDataset(list(range(40)), draw)
        sampler = torch.utils.data.DistributedSampler(dataset, num_replicas=2, rank=rank)
        numbers.append(set(_drawn(_loader(dataset, sampler=sampler, num_workers=2)).values()))
    assert len(numbers[0] | numbers[1]) == 40


@pytest.mark.parametrize("make", [adapter.MapDataset, adapter.StreamDataset])
def test_it_can_be_pickled(photos: Dataset, make: Callable[..., Any]) -> None:
    dataset = make(photos, ImageTransform(corner))
    data = pickle.dumps(dataset)
    assert len(data) < 2000
    again = pickle.loads(data)  # noqa: S301 - our own
    first = next(iter(_loader(again, batch_size=2, num_workers=0)))
    assert first[0].shape == (2, 8, 8, 3)
