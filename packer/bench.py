"""What packing would gain: the same batches read from the folder and from each format, in turns.

`in_turns`, `sample_tree` and `file_system` serve `benchmarks/` too.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image as PillowImage

from packer.convert import convert
from packer.image_policy import Decode
from packer.options import ConvertOptions
from packer.progress import OnProgress
from packer.protocols import PackSource
from packer.sources.opening import open_source
from packer.verify import verify
from readers.dataset import Dataset
from readers.decode import decode
from readers.errors import CorruptDatasetError, OptionError, SampleError
from readers.opening import open_dataset
from readers.registry import format_entry
from readers.sample import Image, Pixels

FOLDER = "folder"
"""Name of the contestant that reads the files as they lie."""
BATCH = 64
SIDE = 256
"""Height and width of decoded samples."""

_BATCHES_READ, _BATCHES_DECODED = 16, 1
_DEVICE_OF_MOUNT = 2
_CLASSES = 10
_HEIGHT, _WIDTH = 375, 500
_QUALITY = 92
_CELLS = (5, 40)
_GRAIN = (30, 115)

Result = TypeVar("Result")
_Fetch = Callable[[NDArray[np.int64]], Sequence[Image]]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A way to store the samples, and what a training loop waits for with it."""

    name: str
    nbytes: int
    """Size of the samples, with all that belongs to them."""
    pack_seconds: float | None
    """What packing took, flushed to the medium; None for the folder."""
    dataset_time: tuple[float, ...]
    """Seconds for a batch, round by round."""
    decoded_dataset_time: tuple[float, ...]
    """The same, to pixels of `SIDE` x `SIDE`."""


@dataclass(frozen=True, slots=True)
class BenchReport:
    """What was measured, the folder first."""

    samples: int
    batch: int
    file_systems: Mapping[str, str]
    """Of the source and of the datasets."""
    contestants: tuple[Contestant, ...]

    def gain(self, contestant: Contestant) -> float:
        """Says how many times as fast as from the folder a batch comes."""
        return _gain(self.contestants[0].dataset_time, contestant.dataset_time)

    def decoded_gain(self, contestant: Contestant) -> float:
        """Says how many times as fast as from the folder a batch of pixels comes."""
        folder = self.contestants[0]
        return _gain(folder.decoded_dataset_time, contestant.decoded_dataset_time)


def bench(
    folder: Path,
    workplace: Path,
    *,
    formats: Sequence[str],
    samples: int,
    rounds: int,
    say: Callable[[str], None],
    on_progress: OnProgress | None = None,
) -> BenchReport:
    """Packs samples of a folder into formats, verifies, and reads random batches in turns.

    Args:
        folder: A folder of images, see `packer.sources.folder`.
        workplace: Existing directory, in which each dataset is made under its format's name.
        formats: Names of formats. Those that hold pixels only get them at `SIDE` x `SIDE`.
        samples: How many at most, taken evenly; files that can't be used are passed over.
        rounds: Turns of each contestant.
        say: Is told what is done next.
        on_progress: Called while packing and verifying, some ten times a second.

    Raises:
        OptionError: The source is no folder of images.
        PackError: It can't be packed.
    """
    source = open_source(folder, spool=workplace)
    if source.kind != FOLDER:
        raise OptionError(f"{folder} is no folder of image files", path=str(folder))
    with ExitStack() as stack:
        listing = Path(stack.enter_context(TemporaryDirectory(dir=workplace))) / "samples.jsonl"
        chosen = _some(source, folder, listing, samples)
        seconds: dict[str, float | None] = {FOLDER: None}
        sizes: dict[str, int] = {}
        fetches: dict[str, tuple[_Fetch, int]] = {}
        for name in formats:
            path = workplace / name
            say(f"pack and verify {name}")
            began = time.perf_counter()
            _pack(chosen, path, name, on_progress)
            seconds[name] = time.perf_counter() - began
            _check(path, on_progress)
            dataset = stack.enter_context(open_dataset(path))
            sizes[name] = sum(file.stat().st_size for file in path.iterdir())
            fetches[name] = partial(_from_dataset, dataset), len(dataset)
        paths = [str(folder / chosen.path(row)) for row in range(len(chosen))]
        sizes[FOLDER] = sum(Path(path).stat().st_size for path in paths)
        fetches = {FOLDER: (partial(_from_files, paths), len(paths)), **fetches}
        say("read in turns")
        fetched = in_turns(
            {name: _turn(*fetch, _BATCHES_READ, _nothing) for name, fetch in fetches.items()},
            rounds,
        )
        decoded = in_turns(
            {name: _turn(*fetch, _BATCHES_DECODED, _pixels) for name, fetch in fetches.items()},
            rounds,
        )
    return BenchReport(
        len(chosen),
        BATCH,
        {str(path): file_system(path) for path in (folder, workplace)},
        tuple(
            Contestant(name, sizes[name], seconds[name], tuple(fetched[name]), tuple(decoded[name]))
            for name in fetches
        ),
    )


def in_turns(
    contestants: Mapping[str, Callable[[], Result]], rounds: int
) -> dict[str, list[Result]]:
    """Lets contestants take turns, so that what disturbs the machine disturbs all of them.

    Each round begins with another one, since who follows whom matters as well.

    Args:
        contestants: What each does in a turn.
        rounds: Turns of each that count; one that doesn't comes before.

    Returns:
        By contestant, the result of each round.
    """
    order = list(contestants)
    results: dict[str, list[Result]] = {name: [] for name in order}
    for number in range(-1, rounds):
        for name in order:
            result = contestants[name]()
            if number >= 0:
                results[name].append(result)
        order.append(order.pop(0))
    return results


def sample_tree(root: Path, files: int) -> Iterator[Path]:
    """Makes JPEG files of some 110 kB, like photographs: smooth, with detail and noise.

    The pictures are the same every time.

    Args:
        root: Folder that is made, with class folders.
        files: How many.

    Yields:
        Each file when it is written.
    """
    classes = min(files, _CLASSES)
    for number in range(files):
        folder = root / f"class-{number % classes:02}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{number:06}.jpg"
        pixels = _picture(np.random.default_rng(number))
        path.write_bytes(simplejpeg.encode_jpeg(pixels, quality=_QUALITY, colorsubsampling="420"))
        yield path


def _picture(random: np.random.Generator) -> Pixels:
    """Adds up a coarse and a finer pattern of colours, and grain."""
    total = np.zeros((_HEIGHT, _WIDTH, 3), np.uint16)
    for cells in _CELLS:
        pattern = PillowImage.fromarray(random.integers(0, 256, (cells, cells, 3), np.uint8))
        total += np.asarray(pattern.resize((_WIDTH, _HEIGHT), PillowImage.Resampling.BILINEAR))
    grain = random.integers(0, random.integers(*_GRAIN), (_HEIGHT, _WIDTH, 1), np.uint8)
    picture: Pixels = (total // len(_CELLS)).astype(np.uint8) // 2 + grain
    return picture


def file_system(path: Path) -> str:
    """Names the type of the file system on which a path lies, as the kernel does."""
    device = path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        head, _, tail = line.partition(" - ")
        if head.split()[_DEVICE_OF_MOUNT] == number:
            return tail.split()[0]
    return "unknown"


def _some(source: PackSource, folder: Path, listing: Path, samples: int) -> PackSource:
    """Makes a source of samples taken evenly from a folder: a list of them."""
    rows = np.unique(np.linspace(0, len(source) - 1, samples).round().astype(np.int64))
    with listing.open("w", encoding="ascii") as stream:
        for path in (source.path(row) for row in rows.tolist() if _is_usable(source, row)):
            named = {"path": path}
            if source.classes:
                named["label"] = path.partition("/")[0]
            stream.write(json.dumps(named) + "\n")
    return open_source(listing, root=folder, spool=listing.parent)


def _is_usable(source: PackSource, row: int) -> bool:
    """Says whether a sample can be decoded, and be named in a list."""
    try:
        _pixels(source[row].image)
        source.path(row).encode()
    except (SampleError, UnicodeEncodeError):
        return False
    return True


def _pack(source: PackSource, path: Path, format: str, on_progress: OnProgress | None) -> None:
    image = None if format_entry(format).encoded else Decode(size=(SIDE, SIDE))
    options = ConvertOptions(image=image)
    convert(source, path, format=format, options=options, on_progress=on_progress)


def _check(path: Path, on_progress: OnProgress | None) -> None:
    faults = verify(path, on_progress=on_progress).faults
    if faults:
        raise CorruptDatasetError(f"{path} is damaged: {faults[0]}", path=str(path))


def _from_files(paths: Sequence[str], rows: NDArray[np.int64]) -> list[Image]:
    images: list[Image] = []
    for row in rows.tolist():
        with open(paths[row], "rb") as stream:  # noqa: PTH123 - as a loader that is to be fast would
            images.append(stream.read())
    return images


def _from_dataset(dataset: Dataset, rows: NDArray[np.int64]) -> list[Image]:
    return [sample.image for sample in dataset.read_many(rows)]


def _turn(
    fetch: _Fetch, samples: int, batches: int, use: Callable[[Image], object]
) -> Callable[[], float]:
    """Makes a contestant: in each turn it fetches random batches and uses every image."""
    random = np.random.default_rng(0)

    def turn() -> float:
        drawn = random.integers(0, samples, (batches, BATCH))
        began = time.perf_counter()
        for rows in drawn:
            for image in fetch(rows):
                use(image)
        return (time.perf_counter() - began) / batches

    return turn


def _nothing(_image: Image) -> None:
    """Leaves an image as it was read."""


def _pixels(image: Image) -> Pixels:
    """Makes pixels of the middle square of an image."""
    pixels = decode(image)
    height, width = pixels.shape[:2]
    if (height, width) == (SIDE, SIDE):
        return pixels
    side = min(height, width)
    left, top = (width - side) / 2, (height - side) / 2
    box = (left, top, left + side, top + side)
    square = PillowImage.fromarray(pixels).resize(
        (SIDE, SIDE), PillowImage.Resampling.BICUBIC, box=box
    )
    return np.asarray(square)


def _gain(folder: Sequence[float], own: Sequence[float]) -> float:
    return statistics.median(folder) / statistics.median(own)
