"""The order of an epoch: complete, even over ranks, the same again, and resumed to the sample."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readers.block_shuffle import BlockShuffle
from readers.errors import OptionError
from readers.permutation import permutation
from readers.progress import Progress
from readers.sampling import EpochSampling, GivenBatches, Sampling
from readers.shuffle_quality import shuffle_quality

_SHAPES = st.tuples(
    st.integers(0, 300),  # samples
    st.integers(1, 40),  # batch size
    st.integers(1, 7),  # ranks
    st.booleans(),  # shuffle
)


def _ranks(
    shape: tuple[int, int, int, bool], *, drop_last: bool = False, seed: int = 3
) -> list[EpochSampling]:
    samples, batch_size, world_size, shuffle = shape
    return [
        EpochSampling(
            samples=samples,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
            rank=rank,
            world_size=world_size,
            drop_last=drop_last,
        )
        for rank in range(world_size)
    ]


def _batches(sampling: Sampling, epoch: int = 0, position: int = 0) -> list[list[int]]:
    return [[int(index) for index in batch] for batch in sampling.batches(epoch, position)]


def _flat(batches: list[list[int]]) -> list[int]:
    return [index for batch in batches for index in batch]


@settings(deadline=None, max_examples=200)
@given(_SHAPES)
def test_ranks_see_every_sample_once_and_repeat_fewer_than_there_are_ranks(
    shape: tuple[int, int, int, bool],
) -> None:
    samples, _, world_size, _ = shape
    ranks = [_batches(sampling) for sampling in _ranks(shape)]
    assert len({tuple(len(batch) for batch in batches) for batches in ranks}) == 1
    counts = Counter(index for batches in ranks for index in _flat(batches))
    assert set(counts) == set(range(samples))
    assert 0 <= counts.total() - samples < world_size
    assert [sampling.count() for sampling in _ranks(shape)] == [len(ranks[0])] * world_size


@settings(deadline=None, max_examples=200)
@given(_SHAPES)
def test_dropping_the_last_leaves_full_batches_and_no_repeats(
    shape: tuple[int, int, int, bool],
) -> None:
    samples, batch_size, world_size, _ = shape
    ranks = [_batches(sampling) for sampling in _ranks(shape, drop_last=True)]
    assert {len(batch) for batches in ranks for batch in batches} <= {batch_size}
    assert {len(batches) for batches in ranks} == {samples // world_size // batch_size}
    counts = Counter(index for batches in ranks for index in _flat(batches))
    assert max(counts.values(), default=1) == 1


def test_an_order_depends_on_seed_and_epoch_alone() -> None:
    (sampling,) = _ranks((100, 7, 1, True))
    (other,) = _ranks((100, 7, 1, True), seed=4)
    orders = [_flat(_batches(sampling, 0)), _flat(_batches(sampling, 1)), _flat(_batches(other, 0))]
    assert all(sorted(order) == list(range(100)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    assert _batches(pickle.loads(pickle.dumps(sampling)), 1) == _batches(sampling, 1)  # noqa: S301
    (plain,) = _ranks((100, 7, 1, False))
    assert _flat(_batches(plain, 5)) == list(range(100))


def test_the_permutation_stays_what_it_was() -> None:
    # Other values would change packed datasets and break every saved state.
    assert permutation(8, 0).tolist() == [5, 7, 1, 4, 2, 0, 6, 3]


def test_a_shuffle_has_no_trace_of_the_order_before() -> None:
    order = permutation(20_000, 1)
    assert abs(float(np.corrcoef(order, np.arange(20_000))[0, 1])) < 0.02
    assert float(np.mean(np.abs(np.diff(order)) == 1)) < 0.001


def _walk(progress: Progress, steps: int) -> Iterator[list[int]]:
    for _, (number, indices) in zip(range(steps), progress.remaining(), strict=False):
        progress.deliver(number)
        yield [int(index) for index in indices]


@pytest.mark.parametrize("shuffle", [True, False])
def test_ten_resumes_in_an_epoch_give_each_sample_once(shuffle: bool) -> None:  # noqa: FBT001
    ranks = _ranks((1003, 8, 4, shuffle))
    for sampling in ranks:
        whole = _batches(sampling, 2)
        progress = Progress(sampling, 2)
        found: list[list[int]] = []
        for _ in range(10):
            found += _walk(progress, 3)
            saved = json.dumps(progress.state())
            progress = Progress.restore(sampling, json.loads(saved))
            assert json.dumps(progress.state()) == saved
        found += _walk(progress, 1000)
        assert found == whole
        assert progress.done


def test_a_resume_out_of_order_leaves_out_what_was_delivered() -> None:
    (sampling,) = _ranks((60, 5, 1, True))
    whole = dict(enumerate(_batches(sampling)))
    progress = Progress(sampling, 0)
    for number in (0, 2, 5, 6):
        progress.deliver(number)
    for _ in range(3):
        progress = Progress.restore(sampling, json.loads(json.dumps(progress.state())))
        assert progress.count() == 8
        left = [[int(index) for index in indices] for _, indices in progress.remaining()]
        assert left == [whole[number] for number in whole if number not in {0, 2, 5, 6}]


def test_training_goes_on_with_other_ranks_and_batches() -> None:
    before = _ranks((1000, 10, 4, True))
    after = _ranks((1000, 16, 2, True))
    found: list[int] = []
    for sampling in before:
        progress = Progress(sampling, 0)
        found += _flat(list(_walk(progress, 5)))
        state = progress.state()
    for sampling in after:
        found += _flat(list(_walk(Progress.restore(sampling, state), 1000)))
    assert sorted(found) == list(range(1000))


def test_a_state_of_another_order_is_refused() -> None:
    (sampling,) = _ranks((60, 5, 1, True))
    state = Progress(sampling, 0).state()
    for other in (
        _ranks((61, 5, 1, True)),
        _ranks((60, 5, 1, False)),
        _ranks((60, 5, 1, True), seed=9),
    ):
        with pytest.raises(OptionError, match=r"saved with (samples|shuffle|seed)"):
            Progress.restore(other[0], state)
    with pytest.raises(OptionError, match="no state"):
        Progress.restore(sampling, {"epoch": 1})


def test_given_batches_are_told_the_epoch_and_skipped() -> None:
    class Told:
        epoch = -1

        def set_epoch(self, epoch: int, /) -> None:
            self.epoch = epoch

        def __iter__(self) -> Iterator[list[int]]:
            return iter([[self.epoch, number] for number in range(4)])

    sampling = GivenBatches(Told())
    assert _batches(sampling, 3, 2) == [[3, 2], [3, 3]]
    assert sampling.count() is None
    with pytest.raises(OptionError, match="once"):
        GivenBatches(iter([[1]]))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 1, "rank": 2, "world_size": 2}, "rank 2"),
        ({"batch_size": 1, "seed": -1}, "seed"),
    ],
)
def test_senseless_options_are_named(options: dict[str, int], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        EpochSampling(samples=10, **options)  # type: ignore[arg-type]


_BLOCKS = st.tuples(st.integers(0, 500), st.integers(1, 40), st.integers(1, 8), st.integers(0, 9))


@settings(deadline=None, max_examples=200)
@given(_BLOCKS)
def test_a_block_shuffle_is_an_order_of_all_samples_of_whole_blocks(
    shape: tuple[int, int, int, int],
) -> None:
    samples, block, blocks, seed = shape
    shuffle = BlockShuffle(block=block, buffer=block * blocks)
    order = shuffle.order(samples, seed)
    assert sorted(order.tolist()) == list(range(samples))
    assert shuffle.order(samples, seed).tolist() == order.tolist()
    if samples % block == 0:
        for start in range(0, samples, shuffle.buffer):
            rows = set(order[start : start + shuffle.buffer].tolist())
            assert {row // block * block + n for row in rows for n in range(block)} == rows


def test_a_block_shuffle_resumes_with_other_batches_and_ranks_and_refuses_another_order() -> None:
    shuffle = BlockShuffle(block=8, buffer=64)
    sampling = EpochSampling(samples=300, batch_size=10, shuffle=shuffle, seed=1)
    whole = _flat(_batches(sampling, epoch=4))
    progress = Progress(sampling, 4)
    for number in range(7):
        progress.deliver(number)
    state = json.loads(json.dumps(progress.state()))
    other = EpochSampling(samples=300, batch_size=5, shuffle=shuffle, seed=1, world_size=2)
    resumed = Progress.restore(other, state)
    assert _flat([list(map(int, batch)) for _, batch in resumed.remaining()]) == whole[70::2]
    assert _flat(_batches(sampling, epoch=5)) != whole
    for unlike in (True, BlockShuffle(block=4, buffer=64)):
        with pytest.raises(OptionError):
            Progress.restore(
                EpochSampling(samples=300, batch_size=10, shuffle=unlike, seed=1), state
            )


def test_the_quality_of_a_shuffle_is_that_of_a_full_one_with_a_large_buffer_only() -> None:
    labels = np.repeat(np.arange(50, dtype=np.int32), 200)
    full = shuffle_quality(permutation(10_000, 5), labels, 64)
    none = shuffle_quality(np.arange(10_000), labels, 64)
    small = shuffle_quality(BlockShuffle(block=50, buffer=100).order(10_000, 5), labels, 64)
    large = shuffle_quality(BlockShuffle(block=50, buffer=5000).order(10_000, 5), labels, 64)
    for figure in (full.displacement, full.parting, full.classes):
        assert figure == pytest.approx(1, abs=0.05)
    assert none.displacement == 0
    assert none.parting < 0.001
    assert none.classes is not None
    assert small.classes is not None
    assert large.classes is not None
    assert none.classes < small.classes < 0.2
    assert large.classes > 0.9
    assert small.parting < 0.05 < large.parting
    assert shuffle_quality(np.arange(0), None, 64).classes is None


@pytest.mark.parametrize(("block", "buffer"), [(0, 5), (6, 5), (-1, -1)])
def test_what_is_no_block_shuffle_is_refused(block: int, buffer: int) -> None:
    with pytest.raises(OptionError):
        BlockShuffle(block=block, buffer=buffer)
