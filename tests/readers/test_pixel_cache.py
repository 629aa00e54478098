"""The pixel cache: it keeps what packing would make, and loses nothing whatever happens."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import resource
import shutil
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from packer.convert import convert
from packer.image_policy import Decode
from packer.options import ConvertOptions
from packer.sources.opening import open_source
from packer.verify import verify
from readers.dataset import Dataset
from readers.decode import decode
from readers.errors import OptionError, SampleError, StorageError, StorageFullError
from readers.fitting import Fit
from readers.loader import MonitoredLoader
from readers.opening import open_dataset
from readers.pixel_cache import PixelCache
from readers.sample import Pixels, Sample
from tests.trees import MemorySource, a_sample, contents, jpeg

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

_SIDE = 20
_ROWS = 60


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, tree: Path) -> Path:
    """The odd tree, packed as files."""
    path = tmp_path_factory.mktemp("files") / "packed"
    convert(open_source(tree), path, format="webdataset")
    return path


@pytest.fixture
def reader(files: Path) -> Iterator[Dataset]:
    with open_dataset(files) as opened:
        yield opened


def all_pixels(cache: PixelCache) -> list[Pixels]:
    return [np.array(sample.image) for sample in cache]


@pytest.mark.parametrize("shard_samples", [7, 1_000_000])
@pytest.mark.parametrize(
    "policy", [Decode(), Decode(size=(_SIDE, 31)), Decode(size=(_SIDE, 31), fit="pad")], ids=str
)
def test_a_full_cache_is_published_as_the_very_dataset_that_packing_makes(
    reader: Dataset,
    tmp_path: Path,
    policy: Decode,
    shard_samples: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("readers.pixel_cache.cache.SHARD_SAMPLES", shard_samples)
    options = ConvertOptions(image=policy, shard_samples=shard_samples)
    convert(open_source(reader.root), tmp_path / "packed", format="npy", options=options)
    with (
        open_dataset(tmp_path / "packed") as packed,
        PixelCache(reader, tmp_path / "cache", size=policy.size, fit=policy.fit) as cache,
    ):
        for row in np.random.default_rng(0).permutation(len(reader)).tolist():
            kept, wanted = cache[row], packed[row]
            assert kept[0] == wanted[0]
            assert kept[2:5] == wanted[2:5]
            np.testing.assert_array_equal(np.asarray(kept.image), np.asarray(wanted.image))
        assert cache.kept == len(cache)
        cache.publish()
        assert contents(tmp_path / "cache") == contents(tmp_path / "packed")
        assert not (tmp_path / "cache.filling").exists()
        assert not verify(tmp_path / "cache").faults
        assert cache.kept == len(cache)
        np.testing.assert_array_equal(np.asarray(cache[-1].image), np.asarray(packed[-1].image))


def test_what_packing_made_is_used_at_once(reader: Dataset, files: Path, tmp_path: Path) -> None:
    options = ConvertOptions(image=Decode(size=(_SIDE, _SIDE)))
    convert(open_source(files), tmp_path / "cache", format="npy", options=options)
    cache = PixelCache(reader, tmp_path / "cache", size=_SIDE)
    assert cache.kept == len(reader)
    assert not (tmp_path / "cache.filling").exists()


def test_what_is_kept_is_not_read_again(files: Path, tmp_path: Path) -> None:
    shutil.copytree(files, tmp_path / "files")
    with open_dataset(tmp_path / "files") as reader:
        first = all_pixels(PixelCache(reader, tmp_path / "cache"))
    for shard in (tmp_path / "files").glob("*.tar"):
        shard.unlink()
    with open_dataset(tmp_path / "files") as reader:
        again = all_pixels(PixelCache(reader, tmp_path / "cache"))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_kept_and_fresh_pixels_are_alike_and_may_not_be_written_to(
    reader: Dataset, tmp_path: Path
) -> None:
    cache = PixelCache(reader, tmp_path / "cache")
    for _ in range(2):
        image = cache[0].image
        assert isinstance(image, np.ndarray)
        assert not image.flags.writeable
        assert image.flags.c_contiguous


def test_a_pickle_is_small_and_finds_what_was_kept(reader: Dataset, tmp_path: Path) -> None:
    cache = PixelCache(reader, tmp_path / "cache", size=_SIDE)
    assert cache[3].key
    data = pickle.dumps(cache)
    assert len(data) < 2000
    assert pickle.loads(data).kept == 1  # noqa: S301 - our own


@pytest.mark.parametrize("kind", ["thread", "fork", "spawn"])
def test_the_workers_of_a_loader_fill_one_cache(reader: Dataset, tmp_path: Path, kind: str) -> None:
    cache = PixelCache(reader, tmp_path / "cache", size=_SIDE)
    epochs = []
    with MonitoredLoader(cache, 7, workers=2, worker_kind=kind) as loader:  # type: ignore[arg-type]
        for _ in range(2):
            epochs.append(np.concatenate([images for images, _ in loader]))
            assert cache.kept == len(reader)
    np.testing.assert_array_equal(epochs[0], epochs[1])
    np.testing.assert_array_equal(epochs[0], np.stack(all_pixels(cache)))


def _fill(packed: Path, path: Path) -> None:
    with open_dataset(packed) as reader:
        cache = PixelCache(reader, path, size=300)
        while True:
            for row in np.random.default_rng(os.getpid()).permutation(len(reader)).tolist():
                assert cache[row].key


def test_killed_jobs_that_share_a_cache_leave_nothing_wrong(
    reader: Dataset, files: Path, tmp_path: Path
) -> None:
    spawn = multiprocessing.get_context("fork")
    for pause in np.random.default_rng(1).uniform(0, 0.05, 12).tolist():
        jobs = [spawn.Process(target=_fill, args=(files, tmp_path / "cache")) for _ in range(2)]
        for job in jobs:
            job.start()
        time.sleep(pause)
        for job in jobs:
            os.kill(job.pid or 0, signal.SIGKILL)
            job.join()
    options = ConvertOptions(image=Decode(size=(300, 300)))
    convert(open_source(files), tmp_path / "packed", format="npy", options=options)
    cache = PixelCache(reader, tmp_path / "cache", size=300)
    assert len(all_pixels(cache)) == cache.kept
    cache.publish()
    assert contents(tmp_path / "cache") == contents(tmp_path / "packed")


@pytest.mark.parametrize("file", ["shard-000000.npy", "states"])
def test_torn_pixels_are_made_again(reader: Dataset, tmp_path: Path, file: str) -> None:
    fresh = all_pixels(PixelCache(reader, tmp_path / "cache", size=_SIDE))
    path = tmp_path / "cache.filling" / file
    data = bytearray(path.read_bytes())
    for at in range(200, len(data), len(data) // 9):
        data[at] ^= 0x10
    path.write_bytes(data)
    cache = PixelCache(reader, tmp_path / "cache", size=_SIDE)
    for one, other in zip(fresh, all_pixels(cache), strict=True):
        np.testing.assert_array_equal(one, other)
    cache.publish()
    assert not verify(tmp_path / "cache").faults


def test_a_limit_keeps_the_first_samples_only(reader: Dataset, tmp_path: Path) -> None:
    each = _SIDE * _SIDE * 3
    cache = PixelCache(reader, tmp_path / "cache", size=_SIDE, limit=5 * each + 1)
    whole = PixelCache(reader, tmp_path / "whole", size=_SIDE)
    for one, other in zip(all_pixels(cache), all_pixels(whole), strict=True):
        np.testing.assert_array_equal(one, other)
    assert cache.kept == 5
    size = sum(path.stat().st_size for path in (tmp_path / "cache.filling").glob("*.npy"))
    assert size <= 5 * each + 128
    with pytest.raises(OptionError, match=f"{len(reader) - 5} of {len(reader)}.*limit"):
        cache.publish()


def test_it_goes_on_without_keeping_when_the_disk_is_full(
    reader: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = all_pixels(PixelCache(reader, tmp_path / "whole", size=_SIDE))
    cache = PixelCache(reader, tmp_path / "cache", size=_SIDE)
    assert cache[0].key
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr(signal, "SIGXFSZ", signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
    try:
        with pytest.warns(UserWarning, match=rf"no room.*: \d+ of {len(reader)} samples"):
            found = all_pixels(cache)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = all_pixels(cache)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    for one, other, third in zip(fresh, found, again, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)
    assert cache.kept < len(reader)
    assert PixelCache(reader, tmp_path / "cache", size=_SIDE).kept == cache.kept


def test_it_says_at_once_that_the_disk_is_too_small(reader: Dataset, tmp_path: Path) -> None:
    with pytest.raises(StorageFullError, match=r"take \d+ bytes, and \d+ are free.*limit"):
        PixelCache(reader, tmp_path / "cache", size=60_000)
    assert not list(tmp_path.iterdir())


def test_another_dataset_or_other_options_are_refused(
    reader: Dataset, tmp_path: Path, files: Path
) -> None:
    other = tmp_path / "other"
    convert(MemorySource([a_sample(1), a_sample(2)], ("k",)), other, format="webdataset")
    cache = PixelCache(reader, tmp_path / "cache", size=_SIDE)
    with open_dataset(other) as two:
        wanted: list[tuple[Dataset, Path, int, Fit]] = [
            (two, tmp_path / "cache", _SIDE, "crop"),
            (reader, tmp_path / "cache", _SIDE + 1, "crop"),
            (reader, tmp_path / "cache", _SIDE, "pad"),
            (reader, other, _SIDE, "crop"),
            (reader, files, _SIDE, "crop"),
        ]
        for source, path, size, fit in wanted:
            with pytest.raises(OptionError, match="choose another path"):
                PixelCache(source, path, size=size, fit=fit)
    assert all_pixels(cache)
    cache.publish()
    with pytest.raises(OptionError, match="choose another path"):
        PixelCache(reader, tmp_path / "cache", size=_SIDE + 1)


def test_a_cut_file_is_refused_with_the_remedy(reader: Dataset, tmp_path: Path) -> None:
    PixelCache(reader, tmp_path / "cache", size=_SIDE)
    os.truncate(tmp_path / "cache.filling" / "shard-000000.npy", 1000)
    with pytest.raises(StorageError, match=r"has 1000 bytes.*remove .*cache.filling"):
        PixelCache(reader, tmp_path / "cache", size=_SIDE)


def test_a_bad_image_is_named_each_time_and_the_others_are_kept(tmp_path: Path) -> None:
    samples = [a_sample(n) for n in range(3)]
    samples[1] = samples[1]._replace(image=jpeg(1)[:-300])
    options = ConvertOptions(on_error="keep")
    source = MemorySource(samples, ("k",))
    convert(source, tmp_path / "packed", format="webdataset", options=options)
    with open_dataset(tmp_path / "packed") as reader:
        cache = PixelCache(reader, tmp_path / "cache", size=_SIDE)
        for _ in range(2):
            with pytest.raises(SampleError, match=r"sample 1 \('0001'\)"):
                cache.read_many([0, 1, 2])
        assert cache[2].key
        with pytest.raises(OptionError, match="1 of 3"):
            cache.publish()


def test_pixels_of_another_size_than_the_index_says_touch_no_other(tmp_path: Path) -> None:
    """Such as of a file that was kept though bad, and that a newer library decodes."""
    source = MemorySource([a_sample(n) for n in range(3)], ("k",))
    convert(source, tmp_path / "packed", format="webdataset")
    with open_dataset(tmp_path / "packed") as reader:
        fresh = [decode(sample.image) for sample in reader]
        heights = reader.index.heights.copy()
        heights[1] = 0
        reader.index.heights = heights
        cache = PixelCache(reader, tmp_path / "cache")
        for _ in range(2):
            for one, other in zip(fresh, all_pixels(cache), strict=True):
                np.testing.assert_array_equal(one, other)
        assert cache.kept == 2
        assert PixelCache(reader, tmp_path / "cache").kept == 2


def test_a_closed_cache_gives_nothing_more(reader: Dataset, tmp_path: Path) -> None:
    cache = PixelCache(reader, tmp_path / "cache", size=_SIDE)
    assert all_pixels(cache)
    cache.close()
    cache.close()
    with pytest.raises(ValueError, match="closed"):
        cache[0]


def test_reads_of_what_is_missing_begin_ahead(
    reader: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    def read_ahead(_: Dataset, indices: Sequence[int]) -> Callable[[], list[Sample]]:
        begun.extend(indices)
        return lambda: reader.read_many(indices)

    monkeypatch.setattr(Dataset, "read_ahead", read_ahead)
    cache = PixelCache(reader, tmp_path / "cache", size=_SIDE)
    wanted = [np.array(sample.image) for sample in cache.read_many([4, 2])]
    wait = cache.read_ahead([2, 3, 4, 5])
    assert wait is not None
    assert begun == [3, 5]
    found = wait()
    assert [sample.key for sample in found] == [reader[row].key for row in (2, 3, 4, 5)]
    np.testing.assert_array_equal(np.asarray(found[0].image), wanted[1])
    assert cache.read_ahead([2, 3, 4, 5]) is None
