"""The random numbers of a sample are the same whoever transforms it, and others each epoch."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from readers.draws import Draws, begin_sample, current_draws
from readers.loader import MonitoredLoader
from readers.sample import Sample
from readers.transforms import Compose, Normalize, RandomHorizontalFlip, RandomResizedCrop
from tests.coded import coded_jpeg

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

_ROWS = 50


def draw(value: int) -> tuple[int, int]:
    """Stands for a transform that draws twice."""
    current_draws().bits()
    return value, current_draws().below(1 << 60)


def drawn(batches: Any) -> dict[int, int]:  # noqa: ANN401 - the loader's own type
    pairs = [pair for values, numbers in batches for pair in zip(values, numbers, strict=True)]
    return {int(value): int(number) for value, number in pairs}


def _loader(**options: Any) -> MonitoredLoader:  # noqa: ANN401 - of the loader
    return MonitoredLoader(
        list(range(_ROWS)),
        **{"batch_size": 7, "transform": draw, "workers": 0, "seed": 3, **options},
    )


def test_numbers_depend_on_seed_epoch_and_sample_alone() -> None:
    loader = _loader()
    epochs = [drawn(loader) for _ in range(2)]
    assert len({*epochs[0].values(), *epochs[1].values()}) == 2 * _ROWS
    assert drawn(_loader(seed=4)).keys() == epochs[0].keys()
    assert not {*drawn(_loader(seed=4)).values()} & {*epochs[0].values()}
    for options in (
        {"shuffle": True},
        {"batch_size": 3, "workers": 3, "in_order": False},
        {"workers": 2, "worker_kind": "fork"},
        {"workers": 2, "worker_kind": "spawn"},
        {"collate": lambda values: tuple(zip(*values, strict=True))},
    ):
        with _loader(**options) as loader:
            assert [drawn(loader) for _ in range(2)] == epochs
    ranks = [drawn(_loader(rank=rank, world_size=2)) for rank in range(2)]
    assert ranks[0] | ranks[1] == epochs[0]
    resumed = _loader()
    resumed.load_state_dict({**resumed.state_dict(), "epoch": 1, "position": 21})
    assert drawn(resumed) == {value: epochs[1][value] for value in range(21, _ROWS)}


def test_a_sample_that_comes_twice_in_a_batch_comes_differently() -> None:
    batches = [[5, 5, 1], [5, 2]]
    loader = MonitoredLoader(list(range(9)), transform=draw, batches=batches, workers=0, seed=1)
    values, numbers = next(iter(loader))
    assert values.tolist() == [5, 5, 1]
    assert len(set(numbers.tolist())) == 3
    other = MonitoredLoader(list(range(9)), transform=draw, batches=batches, workers=2, seed=1)
    assert next(iter(other))[1].tolist() == numbers.tolist()


def test_by_hand_no_sample_is_left_over_from_a_loader() -> None:
    for _ in _loader():
        pass
    assert draw(1) != draw(1)
    random.seed(5)
    first = draw(1)
    random.seed(5)
    assert draw(1) == first


def fail(value: int) -> int:
    raise ValueError(current_draws().bits() and value)


def test_an_error_leaves_no_sample_behind() -> None:
    with pytest.raises(ValueError, match="0"):
        next(iter(_loader(transform=fail)))
    assert draw(1) != draw(1)


def test_draws_are_even_and_pinned() -> None:
    draws = Draws(0)
    values = np.array([draws.uniform(-1, 3) for _ in range(20_000)])
    assert values.min() >= -1
    assert values.max() < 3
    assert np.abs(np.histogram(values, 16, (-1, 3))[0] - 1250).max() < 180
    counts = np.bincount([draws.below(6) for _ in range(12_000)], minlength=6)
    assert np.abs(counts - 2000).max() < 220
    # From the reference implementation of splitmix64 with seed 1234567.
    begin_sample(lambda: 1234567)
    assert [current_draws().bits() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]
    begin_sample(None)


@pytest.mark.parametrize("kind", ["thread", "fork", "spawn"])
def test_augmented_batches_are_the_same_in_every_worker(kind: Any) -> None:  # noqa: ANN401
    photos = [
        Sample(
            str(number), coded_jpeg(number, 90, 130, ((2, 2), (1, 1), (1, 1)), 3), number, {}, ""
        )
        for number in range(12)
    ]
    augment = Compose(
        [RandomResizedCrop(32), RandomHorizontalFlip(), Normalize((0.5,) * 3, (0.2,) * 3)]
    )
    wanted = list(MonitoredLoader(photos, 5, transform=augment, workers=0, seed=9))
    with MonitoredLoader(
        photos, 5, transform=augment, workers=2, worker_kind=kind, seed=9
    ) as loader:
        first, second = list(loader), list(loader)
    for (images, labels), (pixels, numbers) in zip(first, wanted, strict=True):
        assert pixels.shape[1:] == (3, 32, 32)
        np.testing.assert_array_equal(images, pixels)
        np.testing.assert_array_equal(labels, numbers)
    assert not np.array_equal(first[0][0], second[0][0])
