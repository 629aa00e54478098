"""Image policies, through packing and reading, in every format that holds what they make."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from packer.convert import convert
from packer.image_policy import Decode, ImagePolicy, Keep, Reencode, Region, Resize
from packer.options import ConvertOptions
from packer.verify import verify
from readers.dataset import Dataset
from readers.decode import decode
from readers.errors import OptionError, SampleError
from readers.header import read_header
from readers.opening import open_dataset
from readers.sample import Pixels, Sample
from tests.trees import PACKINGS, MemorySource, Packing, a_sample, image_bytes, jpeg, turned

_PICTURE = jpeg(3, 0, 60, 90)
_TURNS = [a_sample(n, f"turn {n}", turned(_PICTURE, n)) for n in range(1, 9)]
_KINDS = [
    a_sample(1, "wide", jpeg(1, 0, 40, 100)),
    a_sample(2, "high", jpeg(2, 0, 100, 40)),
    a_sample(3, "gray", jpeg(3, 0, 30, 30, "L")),
    a_sample(4, "cmyk", jpeg(4, 0, 50, 60, "CMYK")),
    a_sample(5, "dot", jpeg(5, 0, 1, 1)),
    a_sample(6, "thin", jpeg(6, 0, 2, 300)),
]

with_files = pytest.mark.parametrize(
    "format", [one for one in PACKINGS if not one.pixels], ids=str, indirect=True, scope="session"
)
with_pixels = pytest.mark.parametrize(
    "format", [one for one in PACKINGS if one.pixels], ids=str, indirect=True, scope="session"
)


def pack(samples: list[Sample], path: Path, format: Packing, policy: ImagePolicy | None) -> Dataset:
    options = ConvertOptions(image=policy, shard_samples=4)
    source = MemorySource(samples, ("x",))
    convert(source, path, format=format.name, options=options)
    assert verify(path).faults == []
    return open_dataset(path)


def picture(sample: Sample) -> Pixels:
    return sample.image if isinstance(sample.image, np.ndarray) else decode(bytes(sample.image))


def shapes(dataset: Dataset) -> dict[str, tuple[int, ...]]:
    """Gives the shape of each picture, which the index must know too."""
    found = {sample.key: picture(sample).shape for sample in dataset}
    index = dataset.index
    sizes = zip(index.heights.tolist(), index.widths.tolist(), strict=True)
    assert [shape[:2] for shape in found.values()] == [*sizes]
    assert {shape[2] for shape in found.values()} == {3}
    return found


@with_files
@pytest.mark.parametrize(
    ("policy", "wide", "high", "dot"),
    [
        (Resize(side=20), (20, 50), (50, 20), (1, 1)),
        (Resize(side=20, by="longer"), (8, 20), (20, 8), (1, 1)),
        (Resize(side=80, enlarge=True), (80, 200), (200, 80), (80, 80)),
        (Resize(side=80), (40, 100), (100, 40), (1, 1)),
        (Reencode(), (40, 100), (100, 40), (1, 1)),
    ],
    ids=str,
)
def test_files_have_the_size_asked(
    *,
    tmp_path: Path,
    format: Packing,
    policy: ImagePolicy,
    wide: tuple[int, int],
    high: tuple[int, int],
    dot: tuple[int, int],
) -> None:
    with pack(_KINDS, tmp_path / "o", format, policy) as dataset:
        found = shapes(dataset)
        assert (found["wide"][:2], found["high"][:2], found["dot"][:2]) == (wide, high, dot)
        assert set(dataset.manifest.types) == {"jpeg"}
        components = {s.key: read_header(image_bytes(s)).components for s in dataset}
        assert components["gray"] == 1
        assert components["wide"] == 3


@with_pixels
@pytest.mark.parametrize("fit", ["crop", "pad"])
@pytest.mark.parametrize("size", [(16, 16), (10, 30), (120, 50)], ids=str)
def test_pixels_have_the_size_asked(
    tmp_path: Path, format: Packing, fit: str, size: tuple[int, int]
) -> None:
    policy = Decode(size=size, fit=fit)  # type: ignore[arg-type]  # one of the two
    with pack(_KINDS, tmp_path / "o", format, policy) as dataset:
        assert set(shapes(dataset).values()) == {(*size, 3)}
        assert dataset.manifest.shape == (*size, 3)
        wide = picture(dataset[0]).astype(int)
        edges = wide[0].sum(), wide[:, 0].sum()
        if fit == "pad":
            assert 0 in edges
        else:
            assert 0 not in edges
        kept = 40 * size[1] <= 100 * size[0]
        with Image.open(_file(tmp_path, _KINDS[0])) as opened:
            whole = opened.convert("RGB")
            if fit == "crop":
                side = (40 * size[1] / size[0], 40) if kept else (100, 100 * size[0] / size[1])
                left, top = (100 - side[0]) / 2, (40 - side[1]) / 2
                box = (left, top, left + side[0], top + side[1])
                resample = Image.Resampling.BICUBIC
                wanted = np.asarray(whole.resize((size[1], size[0]), resample, box=box))
                assert np.abs(wide - wanted).mean() < 6


def _file(place: Path, sample: Sample) -> Path:
    file = place / "picture.jpg"
    file.write_bytes(image_bytes(sample))
    return file


@with_pixels
def test_mixed_sizes_stay(tmp_path: Path, format: Packing) -> None:
    with pack(_KINDS, tmp_path / "o", format, Decode()) as dataset:
        assert dataset.manifest.shape is None
        for sample, original in zip(dataset, _KINDS, strict=True):
            assert np.array_equal(picture(sample), decode(image_bytes(original)))
        assert sum(dataset.manifest.decoders.values()) == len(_KINDS)


_POLICIES = (
    Keep(),
    Reencode(quality=95, subsampling="444"),
    Resize(side=60, quality=95, subsampling="444"),
    Resize(side=30, quality=95, subsampling="444"),
    Decode(),
    Decode(size=(60, 90)),
)


@pytest.mark.parametrize("policy", _POLICIES, ids=str)
def test_the_turn_is_the_same_in_every_format(
    tmp_path: Path, format: Packing, policy: ImagePolicy
) -> None:
    """Stored bytes are never turned; wherever pixels are made, the turn is applied, once."""
    if isinstance(policy, Decode) != format.pixels:
        if not (format.entry.encoded and format.entry.pixels):
            with pytest.raises(OptionError):
                pack(_TURNS, tmp_path / "o", format, policy)
        return
    with pack(_TURNS, tmp_path / "o", format, policy) as dataset:
        orientations = dataset.index.orientations.tolist()
        if isinstance(policy, Keep):
            assert orientations == [*range(1, 9)]
            assert [image_bytes(s) for s in dataset] == [image_bytes(s) for s in _TURNS]
        else:
            assert orientations == [1] * 8
        base = decode(_PICTURE)
        if isinstance(policy, Resize) and policy.side == 30:
            base = np.asarray(Image.fromarray(base).resize((45, 30), Image.Resampling.BICUBIC))
        for sample, original in zip(dataset, _TURNS, strict=True):
            turn = _TURN[int(original.key[-1])]
            wanted = turn(base)
            if isinstance(policy, Decode) and policy.size is not None:
                assert picture(sample).shape == (60, 90, 3)
                continue
            assert picture(sample).shape == wanted.shape
            assert np.abs(picture(sample).astype(int) - wanted).mean() < 4


_TURN: dict[int, Callable[[Pixels], Pixels]] = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2),
    6: lambda a: a.transpose(1, 0, 2)[:, ::-1],
    7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
    8: lambda a: a.transpose(1, 0, 2)[::-1],
}


@with_files
def test_an_upright_picture_that_fits_stays_as_it_is(tmp_path: Path, format: Packing) -> None:
    samples = [a_sample(1), a_sample(2)]
    with pack(samples, tmp_path / "o", format, Resize(side=24)) as dataset:
        assert [image_bytes(s) for s in dataset] == [image_bytes(s) for s in samples]


@pytest.mark.parametrize(
    "policy", [Reencode(), Resize(side=5), Decode(), Keep(check="decode")], ids=str
)
def test_a_picture_that_can_not_be_decoded_is_named(
    tmp_path: Path, format: Packing, policy: ImagePolicy
) -> None:
    if isinstance(policy, Decode) != format.pixels:
        policy = format.policy if format.pixels else Keep(check="decode")
    samples = [a_sample(1), a_sample(2, "bad", jpeg(2)[:200]), a_sample(3)]
    with pytest.raises(SampleError, match=r"bad\.jpg"):
        pack(samples, tmp_path / "o", format, policy)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("policy", _POLICIES, ids=str)
def test_what_was_done_is_noted(tmp_path: Path, format: Packing, policy: ImagePolicy) -> None:
    if isinstance(policy, Decode) != format.pixels:
        policy = format.policy
    with pack(_TURNS[:1], tmp_path / "o", format, policy) as dataset:
        noted = json.loads((tmp_path / "o/manifest.json").read_text())["options"]["image"]
        assert noted["name"] == type(policy).__name__.lower()
        for option in ("side", "by", "enlarge", "quality", "subsampling", "fit", "check"):
            assert noted.get(option) == getattr(policy, option, None)
        wanted = {Keep: set(), Region: {"simplejpeg"}}.get(type(policy), {"pillow", "simplejpeg"})
        assert wanted <= dataset.manifest.libraries.keys()
