"""Pixels as planes of YUV 4:2:0: half the bytes, nearly the same picture, in every path."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packer.compare import compare
from packer.convert import convert
from packer.image_policy import Decode, Keep
from packer.options import ConvertOptions
from packer.sources.opening import open_source
from packer.verify import verify
from readers.decode import decode
from readers.errors import OptionError
from readers.loader import MonitoredLoader
from readers.opening import open_dataset
from readers.sample import Pixels
from readers.transforms import Compose, RandomResizedCrop
from readers.yuv import Yuv420, yuv_length, yuv_of
from tests.conftest import Run
from tests.trees import contents, plain_files, write_tree

_FORMATS = ("hdf5", "npy")


def smooth(height: int, width: int, seed: int = 0) -> Pixels:
    """A picture whose colours change slowly, so that halving its chroma loses little."""
    y, x = np.mgrid[:height, :width]
    phases = np.random.default_rng(seed).uniform(0, 6, 3)
    waves = [np.sin(x / 40 + y / 50 + phase) * 100 + 128 for phase in phases]
    return np.stack(waves, axis=2).astype(np.uint8)


@given(st.integers(1, 70), st.integers(1, 70))
@settings(deadline=None)
def test_planes_have_half_the_bytes_and_nearly_the_picture(height: int, width: int) -> None:
    pixels = smooth(height, width)
    planes = yuv_of(pixels)
    assert len(bytes(planes)) == yuv_length(height, width)
    assert [plane.shape for plane in planes.planes[1:]] == [(-(-height // 2), -(-width // 2))] * 2
    difference = np.abs(planes.to_rgb().astype(int) - pixels)
    assert difference.max() <= 8
    assert difference.mean() < 2


@pytest.mark.parametrize("color", [(255, 255, 255), (0, 0, 0), (128, 128, 128), (255, 0, 0)])
def test_range_and_order_of_planes_are_those_of_jfif(color: tuple[int, int, int]) -> None:
    planes = yuv_of(np.full((8, 8, 3), color, np.uint8))
    red, green, blue = color
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    wanted = luma, 128 + (blue - luma) / 1.772, 128 + (red - luma) / 1.402
    for plane, value in zip(planes.planes, wanted, strict=True):
        assert np.abs(plane - min(value, 255)).max() <= 1
    assert np.abs(planes.to_rgb() - np.array(color)).max() <= 2


@given(st.data())
@settings(deadline=None)
def test_a_region_is_what_it_is_in_the_whole(data: st.DataObject) -> None:
    height, width = data.draw(st.integers(1, 50)), data.draw(st.integers(1, 50))
    pixels = np.random.default_rng(height).integers(0, 256, (height, width, 3), np.uint8)
    planes = yuv_of(pixels)
    top, left = data.draw(st.integers(0, height - 1)), data.draw(st.integers(0, width - 1))
    rows = data.draw(st.integers(1, height - top))
    columns = data.draw(st.integers(1, width - left))
    found = decode(planes, region=(top, left, rows, columns))
    np.testing.assert_array_equal(found, decode(planes)[top : top + rows, left : left + columns])


@pytest.mark.parametrize("format", _FORMATS)
@pytest.mark.parametrize("size", [None, (20, 30)])
def test_packed_planes_are_those_of_the_pixels(
    tree: Path, tmp_path: Path, format: str, size: tuple[int, int] | None
) -> None:
    paths = {}
    for color in ("rgb", "yuv420"):
        policy = Decode(size=size, color=color)
        options = ConvertOptions(image=policy, shard_samples=9)
        paths[color] = tmp_path / color
        convert(open_source(tree), paths[color], format=format, options=options)
    for copy in (True, False):
        with (
            open_dataset(paths["rgb"]) as pixels,
            open_dataset(paths["yuv420"], copy=copy) as planes,
        ):
            assert planes.manifest.color == "yuv420"
            assert planes.manifest.shape == pixels.manifest.shape
            for one, other in zip(pixels, planes, strict=True):
                assert isinstance(other.image, Yuv420)
                assert isinstance(one.image, np.ndarray)
                assert bytes(other.image) == bytes(yuv_of(one.image))
                assert other.key == one.key
            assert pickle.loads(pickle.dumps(planes))[3].key == planes[3].key  # noqa: S301 - ours
    assert not verify(paths["yuv420"]).faults
    with open_dataset(paths["yuv420"]) as planes:
        assert not compare(planes, open_source(tree)).faults


def test_an_array_of_one_size_opens_as_planes_above_each_other(tree: Path, tmp_path: Path) -> None:
    options = ConvertOptions(image=Decode(size=(20, 30), color="yuv420"))
    convert(open_source(tree), tmp_path / "o", format="npy", options=options)
    array = np.load(tmp_path / "o" / "shard-000000.npy")
    with open_dataset(tmp_path / "o") as planes:
        assert array.shape == (len(planes), 30, 30)
        image = planes[5].image
        assert isinstance(image, Yuv420)
        np.testing.assert_array_equal(array[5, :20], image.planes[0])
        np.testing.assert_array_equal(array[5, 20:].reshape(2, 10, 15), image.planes[1:])


@pytest.mark.parametrize("format", _FORMATS)
def test_planes_are_repacked_as_they_are(tree: Path, tmp_path: Path, format: str) -> None:
    options = ConvertOptions(image=Decode(color="yuv420"))
    convert(open_source(tree), tmp_path / "a", format="npy", options=options)
    convert(open_source(tmp_path / "a"), tmp_path / "b", format=format)
    options = ConvertOptions(image=Keep())
    convert(open_source(tmp_path / "b"), tmp_path / "c", format="npy", options=options)
    first, again = contents(tmp_path / "a"), contents(tmp_path / "c")
    for name in first:
        assert name == "manifest.json" or first[name] == again[name], name


def test_the_loader_and_its_transforms_see_rgb(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", plain_files(12))
    options = ConvertOptions(image=Decode(size=(24, 32), color="yuv420"))
    convert(open_source(tree), tmp_path / "o", format="npy", options=options)
    with open_dataset(tmp_path / "o") as planes:
        for transform in (None, Compose([RandomResizedCrop(16)])):
            with MonitoredLoader(planes, 5, transform=transform, workers=2) as loader:
                shapes = [images.shape for images, _ in loader]
            side = (24, 32) if transform is None else (16, 16)
            assert shapes == [(5, *side, 3), (5, *side, 3), (2, *side, 3)]


def test_odd_sizes_are_refused_and_the_command_packs_even_ones(tmp_path: Path, run: Run) -> None:
    with pytest.raises(OptionError, match="even height and width"):
        Decode(size=(21, 30), color="yuv420")
    tree = write_tree(tmp_path / "tree", plain_files(3))
    arguments = ("convert", tree, tmp_path / "o", "--format", "npy", "--color", "yuv420")
    assert run(*arguments, "--size", "21").status == 2
    assert run(*arguments, "--size", "22").status == 0
    assert "YUV 4:2:0 pixels, 22 x 22" in run("inspect", tmp_path / "o").out
    saved = tmp_path / "one.png"
    assert run("inspect", tmp_path / "o", 1, "--save", saved).status == 0
    assert saved.stat().st_size
