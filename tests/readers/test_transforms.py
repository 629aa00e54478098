"""Transforms see, draw and make what torchvision's of the same names do, and decode no more."""

from __future__ import annotations

import io
import math
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import simplejpeg
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from packer.convert import convert
from packer.options import ConvertOptions
from readers.decode import decode
from readers.draws import Draws, begin_sample
from readers.errors import MissingDependencyError, OptionError
from readers.loader import MonitoredLoader
from readers.monitor.attach import LoaderMonitor
from readers.opening import open_dataset
from readers.rectangle import Rectangle
from readers.sample import Pixels, Sample
from readers.transforms import (
    CenterCrop,
    ChannelsFirst,
    Compose,
    Normalize,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
    sample_generator,
)
from readers.transforms.compose import Step
from readers.transforms.crops import draw_part
from readers.transforms.interpolation import Interpolation
from readers.transforms.size import Size
from tests.coded import coded_jpeg
from tests.trees import MemorySource, Packing, turned

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
C420 = ((2, 2), (1, 1), (1, 1))
FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


@pytest.fixture(autouse=True)
def _no_sample_is_left() -> Iterator[None]:
    yield
    begin_sample(None)


def a_sample(data: bytes | Pixels, label: int | None = 3) -> Sample:
    return Sample("key", data, label, {}, "path")


def smooth(height: int, width: int) -> Pixels:
    coarse = np.random.default_rng(0).integers(0, 255, (6, 7, 3), np.uint8)
    image = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(image)


def a_jpeg(height: int, width: int, orientation: int = 1) -> bytes:
    """Gives a JPEG of a soft picture, with restart markers where this Pillow makes them."""
    stream = io.BytesIO()
    image = Image.fromarray(smooth(height, width))
    image.save(stream, "JPEG", quality=95, restart_marker_blocks=1)
    data = stream.getvalue()
    return data if orientation == 1 else turned(data, orientation)


def expected_size(height: int, width: int, size: int) -> tuple[int, int]:
    """Gives what torchvision's `_compute_resized_output_size` gives."""
    if width <= height:
        return int(size * height / width), size
    return size, int(size * width / height)


def center_cropped(pixels: Pixels, height: int, width: int) -> Pixels:
    """Does what torchvision's `center_crop` does."""
    rows, columns = pixels.shape[:2]
    down, across = max(0, height - rows), max(0, width - columns)
    before, after = (down // 2, (down + 1) // 2), (across // 2, (across + 1) // 2)
    padded = np.pad(pixels, (before, after, (0, 0)))
    top = round((padded.shape[0] - height) / 2.0)
    left = round((padded.shape[1] - width) / 2.0)
    return padded[top : top + height, left : left + width]


def seeded(number: int) -> Draws:
    begin_sample(lambda: number)
    return Draws(number)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("orientation", [1, 6, 7])
@pytest.mark.parametrize("seed", range(8))
def test_a_random_crop_is_the_part_of_the_whole_resized(
    seed: int, orientation: int, interpolation: Interpolation
) -> None:
    data = a_jpeg(150, 203, orientation)
    steps: list[Step] = [
        RandomResizedCrop((48, 64), interpolation=interpolation),
        RandomHorizontalFlip(),
    ]
    draws = seeded(seed)
    pixels, label = Compose(steps)(a_sample(data))
    whole = decode(data)
    top, left, height, width = draw_part(
        whole.shape[0], whole.shape[1], (0.08, 1.0), (3 / 4, 4 / 3), draws
    )
    part = Image.fromarray(whole[top : top + height, left : left + width])
    wanted = np.asarray(part.resize((64, 48), FILTERS[interpolation]))
    if draws.uniform() < 0.5:
        wanted = wanted[:, ::-1]
    np.testing.assert_array_equal(pixels, wanted)
    assert label == 3


@settings(max_examples=150, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 120), st.integers(1, 120)),
    resized=st.integers(1, 100),
    cropped=st.tuples(st.integers(1, 90), st.integers(1, 90)),
    mirrored=st.booleans(),
)
def test_resize_and_center_crop_as_one_are_as_one_after_the_other(
    shape: tuple[int, int], resized: int, cropped: tuple[int, int], *, mirrored: bool
) -> None:
    pixels = smooth(*shape)
    steps: list[Step] = [Resize(resized), CenterCrop(cropped)]
    if mirrored:
        steps.insert(1, RandomHorizontalFlip(1))
    made, _ = Compose(steps, reducing_gap=None)(a_sample(pixels))
    height, width = expected_size(*shape, resized)
    whole = np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR))
    wanted = center_cropped(whole[:, ::-1] if mirrored else whole, *cropped)
    assert made.shape == (*cropped, 3)
    # Pillow 13 chooses by the sizes which direction it resamples first, and rounds in between.
    assert np.abs(made.astype(int) - wanted).max() <= 2


@pytest.mark.parametrize(
    ("size", "max_size", "shape", "wanted"),
    [
        (256, None, (375, 500), (256, 341)),
        (256, None, (500, 375), (341, 256)),
        (100, 120, (375, 500), (90, 120)),
        (100, 120, (500, 375), (120, 90)),
        (100, 120, (100, 110), (100, 110)),
        ((30, 40), None, (375, 500), (30, 40)),
        (64, None, (64, 64), (64, 64)),
        (2, None, (1, 300), (2, 600)),
    ],
)
def test_resize_gives_the_sizes_of_torchvision(
    size: Size, max_size: int | None, shape: tuple[int, int], wanted: tuple[int, int]
) -> None:
    pixels, _ = Compose([Resize(size, max_size)])(a_sample(smooth(*shape)))
    assert pixels.shape == (*wanted, 3)


@pytest.mark.parametrize("size", [20, (20, 70), (60, 9), (61, 83), (90, 100), (11, 12)])
def test_center_crop_alone_is_exact(size: Size) -> None:
    data = coded_jpeg(0, 61, 83, C420, 1)
    pixels, _ = Compose([CenterCrop(size)])(a_sample(data))
    wanted = center_cropped(decode(data), *((size, size) if isinstance(size, int) else size))
    np.testing.assert_array_equal(pixels, wanted)


def torchvision_part(height: int, width: int, draw: random.Random) -> tuple[int, ...]:
    """Does what torchvision's `RandomResizedCrop.get_params` does."""
    area = height * width
    low, high = math.log(3 / 4), math.log(4 / 3)
    for _ in range(10):
        target = area * draw.uniform(0.08, 1.0)
        aspect = math.exp(draw.uniform(low, high))
        w, h = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            return draw.randint(0, height - h), draw.randint(0, width - w), h, w
    w, h = width, height
    if width / height < 3 / 4:
        h = round(w / (3 / 4))
    elif width / height > 4 / 3:
        w = round(h * (4 / 3))
    return (height - h) // 2, (width - w) // 2, h, w


@pytest.mark.parametrize("shape", [(375, 500), (500, 333), (30, 400), (7, 5), (1, 1), (900, 40)])
def test_parts_are_distributed_as_torchvisions(shape: tuple[int, int]) -> None:
    count = 4000
    draw, draws = random.Random(0), Draws(0)  # noqa: S311 - no secret
    ours = np.array([draw_part(*shape, (0.08, 1.0), (3 / 4, 4 / 3), draws) for _ in range(count)])
    theirs = np.array([torchvision_part(*shape, draw) for _ in range(count)])
    assert (ours[:, :2] >= 0).all()
    assert (ours[:, 0] + ours[:, 2] <= shape[0]).all()
    assert (ours[:, 1] + ours[:, 3] <= shape[1]).all()
    for column in range(4):
        # Two-sample Kolmogorov-Smirnov: exceeded by chance once in 10,000.
        values = np.sort(np.concatenate([ours[:, column], theirs[:, column]]))
        steps = [
            np.searchsorted(np.sort(side[:, column]), values, side="right") / count
            for side in (ours, theirs)
        ]
        assert np.abs(steps[0] - steps[1]).max() < 2.23 * math.sqrt(2 / count)


def test_normalize_is_torchvisions_to_the_bit() -> None:
    pixels = smooth(30, 41)
    scaled = pixels.transpose(2, 0, 1).astype(np.float32) / np.float32(255)
    mean, std = (np.array(values, np.float32).reshape(3, 1, 1) for values in (MEAN, STD))
    wanted = (scaled - mean) / std
    first = Normalize(MEAN, STD)(pixels)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, wanted)
    last = Normalize(MEAN, STD, "HWC")(pixels)
    np.testing.assert_array_equal(last, wanted.transpose(1, 2, 0))
    assert first.flags.c_contiguous
    assert last.flags.c_contiguous


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [RandomResizedCrop(24)],
        [RandomResizedCrop(24), RandomHorizontalFlip(1)],
        [RandomResizedCrop(24, interpolation="area"), RandomHorizontalFlip(1)],
        [RandomResizedCrop(24, interpolation="linear")],
        [CenterCrop(24), RandomHorizontalFlip(1)],
        [Resize(20), CenterCrop(30)],
        [Resize(20, interpolation="area"), CenterCrop((30, 10))],
        [RandomResizedCrop(24), ChannelsFirst()],
        [RandomResizedCrop(24), RandomHorizontalFlip(), Normalize(MEAN, STD)],
        [RandomResizedCrop(24), Normalize(MEAN, STD, "HWC")],
        [RandomResizedCrop(24), np.negative],
        [np.negative, CenterCrop(7)],
    ],
    ids=map(str, range(13)),
)
def test_what_is_written_into_the_batch_is_what_calling_gives(steps: list[Step]) -> None:
    transform = pickle.loads(pickle.dumps(Compose(steps)))  # noqa: S301 - our own
    sample = a_sample(coded_jpeg(1, 61, 83, C420, 1))
    for number in range(4):
        seeded(number)
        wanted, label = transform(sample)
        batch = np.full((2, *wanted.shape), 77, wanted.dtype)
        seeded(number)
        made, _ = transform.write_into(sample, [batch[1], None])
        np.testing.assert_array_equal(made, wanted)
        if steps and steps[-1] is not np.negative:
            assert np.shares_memory(made, batch[1])
            np.testing.assert_array_equal(batch[1], wanted)
        assert (batch[0] == 77).all()
        seeded(number)
        other, _ = transform.write_into(sample, [np.empty((1, 2), np.int8), None])
        np.testing.assert_array_equal(other, wanted)
        assert label == 3


@pytest.mark.parametrize("interpolation", ["linear", "area"])
def test_opencv_resamples_the_part_as_it_would_by_hand(interpolation: Interpolation) -> None:
    cv2 = pytest.importorskip("cv2")
    flag = {"linear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA}[interpolation]
    data = a_jpeg(150, 203)
    whole = decode(data)
    for number in range(6):
        draws = seeded(number)
        pixels, _ = Compose([RandomResizedCrop(48, interpolation=interpolation)])(a_sample(data))
        part = draw_part(150, 203, (0.08, 1.0), (3 / 4, 4 / 3), draws)
        cut = whole[part.top :, part.left :][: part.height, : part.width]
        np.testing.assert_array_equal(pixels, cv2.resize(cut, (48, 48), interpolation=flag))


def test_a_second_resampling_works_on_the_pixels_of_the_first() -> None:
    pixels = smooth(90, 120)
    made, _ = Compose([Resize(60), Resize((33, 44)), CenterCrop(20)])(a_sample(pixels))
    first = Image.fromarray(pixels).resize((80, 60), Image.Resampling.BILINEAR)
    second = np.asarray(first.resize((44, 33), Image.Resampling.BILINEAR))
    assert np.abs(made.astype(int) - center_cropped(second, 20, 20)).max() <= 2
    for number in range(5):
        draws = seeded(number)
        made, _ = Compose([Resize(60), RandomResizedCrop(32)])(a_sample(pixels))
        top, left, height, width = draw_part(60, 80, (0.08, 1.0), (3 / 4, 4 / 3), draws)
        box = (left, top, left + width, top + height)
        wanted = np.asarray(first.crop(box).resize((32, 32), Image.Resampling.BILINEAR))
        np.testing.assert_array_equal(made, wanted)


def test_functions_get_pixels_wherever_they_stand() -> None:
    seen = []

    def invert(pixels: Pixels) -> Pixels:
        seen.append((pixels.shape, pixels.dtype.name, pixels.flags.c_contiguous))
        return 255 - pixels

    data = coded_jpeg(0, 61, 83, C420, 1)
    made, _ = Compose([invert, CenterCrop(30), invert])(a_sample(data))
    np.testing.assert_array_equal(made, center_cropped(decode(data), 30, 30))
    assert seen == [((61, 83, 3), "uint8", True), ((30, 30, 3), "uint8", True)]


def test_only_what_is_seen_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    stock: Callable[..., Pixels] = simplejpeg.decode_jpeg

    def decode_jpeg(data: bytes, **options: int) -> Pixels:
        pixels = stock(data, **options)
        decoded.append(pixels.shape[:2])
        return pixels

    monkeypatch.setattr("simplejpeg.decode_jpeg", decode_jpeg)
    sample = a_sample(coded_jpeg(0, 640, 800, C420, 1))
    Compose([CenterCrop(64)])(sample)
    Compose([RandomResizedCrop(20, scale=(0.01, 0.02))])(sample)
    Compose([Resize(40)])(sample)
    Compose([Resize(40)], reducing_gap=None)(sample)
    Compose([Resize(40), CenterCrop(20)], reducing_gap=1)(sample)
    small, part, scaled, whole, both = decoded
    assert small <= (96, 96)
    assert max(part) <= 200
    assert scaled == (160, 200)
    assert whole == (640, 800)
    assert both < (80, 100)


def test_a_reducing_gap_of_3_is_hard_to_see() -> None:
    sample = a_sample(a_jpeg(640, 800))
    chains: list[list[Step]] = [[Resize(40)], [Resize(60), CenterCrop(50)], [RandomResizedCrop(30)]]
    for steps in chains:
        seeded(1)
        fast, _ = Compose(steps)(sample)
        seeded(1)
        exact, _ = Compose(steps, reducing_gap=None)(sample)
        assert np.abs(fast.astype(int) - exact).max() <= 3


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: RandomResizedCrop(0), "at least 1 pixel"),
        (lambda: RandomResizedCrop(8, scale=(0.5, 0.1)), "scale"),
        (lambda: RandomResizedCrop(8, ratio=(0, 1)), "ratio"),
        (lambda: RandomResizedCrop(8, interpolation="nearest"), "known: bilinear, bicubic"),  # type: ignore[arg-type]
        (lambda: Resize(8, 8), "max_size"),
        (lambda: Resize((8, 9), 10), "max_size"),
        (lambda: RandomHorizontalFlip(1.5), "probability"),
        (lambda: Normalize((0, 0), (1, 1)), "three numbers"),
        (lambda: Normalize(MEAN, (1, 0, 1)), "not zero"),
        (lambda: Normalize(MEAN, STD, "CWH"), "layout"),  # type: ignore[arg-type]
        (lambda: Compose([], reducing_gap=0.5), "reducing_gap"),
        (lambda: Compose([Normalize(MEAN, STD), CenterCrop(2)])(a_sample(smooth(9, 9))), "after"),
    ],
    ids=map(str, range(12)),
)
def test_values_that_make_no_sense_are_errors(make: Callable[[], object], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        make()


def test_opencv_is_loaded_only_when_asked_for_and_missed_with_advice() -> None:
    code = """
import sys
sys.modules["cv2"] = None
from readers.errors import MissingDependencyError
from readers.transforms import RandomResizedCrop
RandomResizedCrop(8)
try:
    RandomResizedCrop(8, interpolation="area")
except MissingDependencyError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'dataset-packer[transforms]'" in done.stdout
    assert issubclass(MissingDependencyError, ImportError)


def test_functions_draw_numbers_of_the_sample() -> None:
    seeded(5)
    first = [sample_generator().integers(1 << 40) for _ in range(3)]
    seeded(5)
    assert [sample_generator().integers(1 << 40) for _ in range(3)] == first
    assert len(set(first)) == 3
    begin_sample(None)
    assert sample_generator().integers(1 << 40) != sample_generator().integers(1 << 40)


def test_a_part_of_a_sample_keeps_within_it() -> None:
    assert draw_part(1, 1, (0.08, 1.0), (3 / 4, 4 / 3), Draws(0)) == Rectangle(0, 0, 1, 1)


def test_every_format_gives_the_same_batches(tmp_path: Path, format: Packing) -> None:
    samples = [
        Sample(f"k/{number}", coded_jpeg(number, 70, 90, C420, 2), 0, {}, f"k/{number}.jpg")
        for number in range(5)
    ]
    options = ConvertOptions(image=format.policy)
    convert(MemorySource(samples, ("k",)), tmp_path / "packed", format=format.name, options=options)
    steps: list[Step] = [RandomResizedCrop(24, interpolation="area"), RandomHorizontalFlip()]
    with open_dataset(tmp_path / "packed") as dataset:
        found, _ = next(iter(MonitoredLoader(dataset, 5, transform=Compose(steps), workers=2)))
        stored = [dataset[number].image for number in range(5)]
    decoded = [
        sample._replace(image=decode(image)) for sample, image in zip(samples, stored, strict=True)
    ]
    wanted, _ = next(iter(MonitoredLoader(decoded, 5, transform=Compose(steps), workers=0)))
    np.testing.assert_array_equal(found, wanted)


def test_the_monitor_tells_decoding_from_transforming(monkeypatch: pytest.MonkeyPatch) -> None:
    stock: Callable[..., Pixels] = simplejpeg.decode_jpeg

    def decode_slowly(data: bytes, **options: int) -> Pixels:
        time.sleep(0.03)
        return stock(data, **options)

    def wait(pixels: Pixels) -> Pixels:
        time.sleep(0.01)
        return pixels

    monkeypatch.setattr("simplejpeg.decode_jpeg", decode_slowly)
    photos = [a_sample(coded_jpeg(number, 90, 90, C420, 1)) for number in range(4)]
    monitor = LoaderMonitor()
    transform = Compose([RandomResizedCrop(30), wait])
    list(MonitoredLoader(photos, 4, transform=transform, workers=0, monitor=monitor))
    batch = monitor.recording().batches[0]
    assert batch.decode >= 0.12e9
    assert batch.transform >= 0.04e9


def test_steps_take_pixels_that_lie_in_another_order() -> None:
    pixels = np.arange(6 * 4 * 3, dtype=np.uint8).reshape(6, 4, 3)
    sample = Sample("k", pixels, 1, {}, "k.png")
    swapped = Compose([lambda seen: seen[..., ::-1], RandomHorizontalFlip(1.0)])
    np.testing.assert_array_equal(swapped(sample)[0], pixels[:, ::-1, ::-1])
