"""Our readers in PaddlePaddle's own loader."""

from __future__ import annotations

from collections.abc import Iterator
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

pytestmark = pytest.mark.filterwarnings("ignore")  # Paddle's own are many

_ROWS = 37
_WORKERS: list[dict[str, Any]] = [
    {"num_workers": 0},
    {"num_workers": 2},
    {"num_workers": 2, "use_shared_memory": False, "prefetch_factor": 3},
]


@pytest.fixture(scope="module")
def adapter() -> Any:  # noqa: ANN401 - a module
    pytest.importorskip("paddle")
    return pytest.importorskip("readers.paddle")


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


def _loader(adapter: Any, dataset: Any, **options: Any) -> Any:  # noqa: ANN401 - Paddle's own types
    return adapter.paddle.io.DataLoader(
        dataset, places=adapter.paddle.CPUPlace(), return_list=True, **options
    )


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("options", _WORKERS)
def test_by_index_it_is_the_dataset(
    adapter: Any,  # noqa: ANN401 - a module
    photos: Dataset,
    options: dict[str, Any],
    persistent: bool,  # noqa: FBT001 - a parameter
) -> None:
    dataset = adapter.MapDataset(photos, ImageTransform(corner))
    loader = _loader(adapter, dataset, batch_size=5, persistent_workers=persistent, **options)
    samples = photos.read_many(range(_ROWS))
    for _ in range(2):
        batches = list(loader)
        images = np.concatenate([images.numpy() for images, _ in batches])
        labels = np.concatenate([labels.numpy() for _, labels in batches])
        assert np.array_equal(images, np.stack([corner(decode(x.image)) for x in samples]))
        assert labels.tolist() == [sample.label for sample in samples]


@pytest.mark.parametrize("options", _WORKERS)
@pytest.mark.parametrize("samples", [1, 40, 1003])
def test_a_stream_gives_each_sample_to_one_worker(
    adapter: Any,  # noqa: ANN401 - a module
    samples: int,
    options: dict[str, Any],
) -> None:
    dataset = adapter.StreamDataset(list(range(samples)), shuffle=True, seed=1)
    loader = _loader(adapter, dataset, batch_size=8, **options)
    epochs = []
    for epoch in range(2):
        dataset.set_epoch(epoch)
        epochs.append([int(value) for batch in loader for value in batch])
        assert sorted(epochs[-1]) == list(range(samples))
    assert epochs[0] != epochs[1] or samples < 2


def draw(value: int) -> tuple[int, int]:
    return value, current_draws().below(1 << 60)


def _drawn(loader: Any) -> dict[int, int]:  # noqa: ANN401 - Paddle's own types
    pairs = [pair for values, numbers in loader for pair in zip(values, numbers, strict=True)]
    return {int(value): int(number) for value, number in pairs}


@pytest.mark.parametrize("told", [True, False])
def test_random_numbers_differ_between_workers_and_epochs(
    adapter: Any,  # noqa: ANN401 - a module
    *,
    told: bool,
) -> None:
    found = []
    for options in (*_WORKERS, {"num_workers": 2, "persistent_workers": True}):
        dataset = adapter.MapDataset(list(range(40)), draw, seed=3)
        loader = _loader(adapter, dataset, batch_size=4, **options)
        epochs = []
        for epoch in range(2):
            if told:
                dataset.set_epoch(epoch)
            epochs.append(_drawn(loader))
        assert len({*epochs[0].values(), *epochs[1].values()}) == 80
        found.append(epochs)
    assert all(epochs == found[0] for epochs in found) or not told
