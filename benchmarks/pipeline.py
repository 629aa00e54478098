"""Whole paths from stored pictures to training batches, ours against others.

Two qualities are two contests, for resizing alone differs by a factor of five: antialiased, as
torchvision and Pillow do it, and fast, as OpenCV does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from benchmarks import cache_epochs, decoder_share, rewrite
from benchmarks.contest import Contest, Goal
from benchmarks.contestant import Interpreters, Pantry, Script
from benchmarks.large_pictures import make_large
from benchmarks.pipelines.serving import Turn
from benchmarks.pipelines.task import Resize, Task
from benchmarks.race import BUSY, GPU, Course, Entry, best, race
from benchmarks.tree import Tree, part_of
from packer.engines.local import worker_count

_FILES = 5000
"""Pictures of the tree that are used: more than any turn takes."""
_SIDE = 256
"""Of cached pixels."""

_TORCHVISION = "torchvision, ImageFolder"
_FFCV_PIXELS = "FFCV, pixels"
_MEMCPY = "memcpy"
_PLAIN = "ours, no regions"
_REGION = "ours, regions"
_IN_TORCH = "ours, regions, torch's DataLoader"
_EXACT = "ours, regions, full size"
_CACHE = "ours, pixels"

_LMDB = ("--format", "lmdb")
_LMDB_REGION = (*_LMDB, "--image", "region")
_PIXELS = ("--format", "npy", "--image", "decode", "--size", str(_SIDE))

_TO_PEERS, _TO_TORCHVISION, _TO_PLAIN = 2.0, 3.0, 1.6
_LARGE, _CACHED, _CENTER = 6.0, 1.5, 0.8
_FED = 0.98

_LARGE_FILES, _LARGE_BATCH = 64, 16


@dataclass(frozen=True, slots=True)
class Plan:
    """How the benchmark is to be run."""

    rounds: int
    interpreters: Interpreters
    contests: Sequence[str] = ()
    """Names of those to be held; none: all."""
    turn: Turn = Turn()  # noqa: RUF009 - it can't change
    samples: Path | None = None
    """Folder for the first pictures of each contestant."""


def pipeline(tree: Tree, place: Path, plan: Plan) -> Iterator[Contest]:
    """Holds the contests."""
    part = part_of(tree, place, min(_FILES, len(tree.paths)))
    inputs = place / "inputs"
    inputs.mkdir()
    pantry = Pantry(inputs, plan.interpreters)
    turn = replace(plan.turn, unmeasured=worker_count(0))
    course = Course(part, pantry, plan.interpreters, plan.rounds, turn, plan.samples)
    for name in plan.contests or CONTESTS:
        yield from CONTESTS[name](course, place)


def _antialiased(course: Course, _: Path) -> Iterator[Contest]:
    entries = (
        Entry(_TORCHVISION, Script("torchvision_folder", None, peer=True)),
        Entry("webdataset", Script("webdataset_tar", peer=True)),
        Entry("Hugging Face datasets", Script("huggingface_arrow", peer=True)),
        Entry("LitData", Script("litdata_chunks", peer=True)),
        Entry("MosaicML streaming", Script("mosaicml_mds", peer=True)),
        *_our_jpegs(),
    )
    yield race(
        course,
        "JPEG to batch, antialiased",
        entries,
        _task(resize="bilinear"),
        goals=_jpeg_goals,
        baselines=(_TORCHVISION, _PLAIN),
        remarks=("resized with antialiasing: torchvision's, and Pillow's for ours",),
    )


def _fast(course: Course, _: Path) -> Iterator[Contest]:
    files = "files, simplejpeg, OpenCV"
    entries = (
        Entry(files, Script("simplejpeg_folder", None, peer=True)),
        Entry("SPDL", Script("spdl_threads", None, peer=True)),
        Entry("DALI", Script("dali_cpu", None, peer=True)),
        Entry("FFCV, its own JPEGs", Script("ffcv_beton", ("jpg",), peer=True)),
        *_our_jpegs(),
    )
    yield race(
        course,
        "JPEG to batch, fast",
        entries,
        _task(resize="linear"),
        goals=_jpeg_goals,
        baselines=(files, _PLAIN),
        remarks=(
            "resized linearly, without antialiasing; FFCV: over areas",
            "FFCV decodes JPEGs that it encoded anew: at most 500 pixels a side, quality 90",
        ),
    )


def _our_jpegs() -> tuple[Entry, ...]:
    return (
        Entry(_PLAIN, Script("ours", _LMDB)),
        Entry(_REGION, Script("ours", _LMDB_REGION)),
        Entry(_IN_TORCH, Script("ours_torch", _LMDB_REGION, maker="ours")),
    )


def _jpeg_goals(contest: Contest, peers: Sequence[str]) -> Iterator[Goal]:
    if (rival := best(contest, peers)) is not None:
        yield Goal(_REGION, "ratio", _TO_PEERS, rival)
    if _TORCHVISION in peers:
        yield Goal(_REGION, "ratio", _TO_TORCHVISION, _TORCHVISION)
    yield Goal(_REGION, "ratio", _TO_PLAIN, _PLAIN)


def _share(course: Course, _: Path) -> Iterator[Contest]:
    source = course.pantry.prepare(course.tree.root, Script("ours", _LMDB_REGION))
    for resize in ("bilinear", "linear"):
        yield decoder_share.measure(course, source, replace(_task(), resize=resize))


def _large(course: Course, place: Path) -> Iterator[Contest]:
    count = min(_LARGE_FILES, len(course.tree.paths))
    large = make_large(course.tree, place / "large", count)
    own = replace(course, tree=large, turn=replace(course.turn, batches=4))
    entries = (
        Entry(_TORCHVISION, Script("torchvision_folder", None, peer=True)),
        Entry(_PLAIN, Script("ours", _LMDB)),
        Entry(_REGION, Script("ours", _LMDB_REGION)),
        Entry(_EXACT, Script("ours_exact", _LMDB_REGION, maker="ours")),
    )

    def goals(_: Contest, peers: Sequence[str]) -> Iterator[Goal]:
        if _TORCHVISION in peers:
            yield Goal(_REGION, "ratio", _LARGE, _TORCHVISION)

    yield race(
        own,
        "4000 x 3000 to batch, antialiased",
        entries,
        replace(_task(resize="bilinear"), batch=min(_LARGE_BATCH, count)),
        goals=goals,
        baselines=(_TORCHVISION, _PLAIN),
        remarks=(
            f"{count} pictures, each made of 16 photographs enlarged to 1000 x 750",
            f"the two before {_EXACT}: decoded at 1/2, 1/4 or 1/8 of large crops",
        ),
    )


def _pixels(course: Course, _: Path) -> Iterator[Contest]:
    def goals(_: Contest, peers: Sequence[str]) -> Iterator[Goal]:
        if _FFCV_PIXELS in peers:
            yield Goal(_CACHE, "ratio", _CACHED, _FFCV_PIXELS)

    yield race(
        course,
        f"pixels of {_SIDE} x {_SIDE}, random resized crop",
        (
            Entry(_FFCV_PIXELS, Script("ffcv_beton", ("raw", str(_SIDE)), peer=True)),
            Entry(_CACHE, Script("ours", _PIXELS)),
            Entry("ours, pixels, torch's DataLoader", Script("ours_torch", _PIXELS, maker="ours")),
            Entry("ours, pixels, linear", Script("ours", _PIXELS), resize="linear"),
        ),
        _task(resize="area"),
        goals=goals,
        baselines=(_FFCV_PIXELS,),
        remarks=("resized over areas (OpenCV's INTER_AREA) unless said otherwise",),
    )


def _center(course: Course, _: Path) -> Iterator[Contest]:
    pixels = course.pantry.prepare(course.tree.root, Script("ours", _PIXELS))

    def goals(_: Contest, __: Sequence[str]) -> Iterator[Goal]:
        yield Goal(_CACHE, "ratio", _CENTER, _MEMCPY)

    yield race(
        course,
        f"pixels of {_SIDE} x {_SIDE}, middle cropped",
        (
            Entry(_MEMCPY, Script("memcpy", None), source=pixels),
            Entry(_FFCV_PIXELS, Script("ffcv_beton", ("raw", str(_SIDE)), peer=True)),
            Entry(_CACHE, Script("ours", _PIXELS)),
        ),
        replace(_task(), crop="center"),
        goals=goals,
        baselines=(_MEMCPY, _FFCV_PIXELS),
        remarks=(
            f"{_MEMCPY}: as many bytes as a batch has, in one block a picture, into new memory",
        ),
    )


def _gpu(course: Course, _: Path) -> Iterator[Contest]:
    own = replace(course, turn=replace(course.turn, pace=GPU))
    entries = (
        Entry(_TORCHVISION, Script("torchvision_folder", None, peer=True), resize="bilinear"),
        Entry("ours, lmdb, kept", Script("ours", _LMDB)),
        Entry("ours, lmdb, regions", Script("ours", _LMDB_REGION)),
        Entry(
            "ours, webdataset, regions",
            Script("ours", ("--format", "webdataset", "--image", "region")),
        ),
        Entry("ours, hdf5, regions", Script("ours", ("--format", "hdf5", "--image", "region"))),
        Entry(f"ours, npy, pixels of {_SIDE}", Script("ours", _PIXELS)),
    )

    def goals(contest: Contest, _: Sequence[str]) -> Iterator[Goal]:
        name = f"ours, npy, pixels of {_SIDE}"
        if name in contest.costs:
            yield Goal(name, "least", _FED, BUSY)

    yield race(
        own,
        f"feeding a GPU that takes {GPU:,} images/s",
        entries,
        _task(resize="linear"),
        goals=goals,
        baselines=(_TORCHVISION,),
        remarks=(
            "the training step is a stand-in: the loop sleeps for as long as the GPU would take",
            "resized linearly; torchvision: antialiased",
        ),
    )


def _epochs(course: Course, place: Path) -> Iterator[Contest]:
    source = course.pantry.prepare(course.tree.root, Script("ours", _LMDB))
    yield cache_epochs.measure(course, source, place / "cache", _SIDE)


def _rewriting(course: Course, place: Path) -> Iterator[Contest]:
    yield from rewrite.measure(course, place / "rewriting")


def _task(resize: Resize = "bilinear") -> Task:
    return Task("", workers=worker_count(0), resize=resize)


CONTESTS: Mapping[str, Callable[[Course, Path], Iterator[Contest]]] = MappingProxyType(
    {
        "antialiased": _antialiased,
        "fast": _fast,
        "share": _share,
        "large": _large,
        "pixels": _pixels,
        "center": _center,
        "epochs": _epochs,
        "rewrite": _rewriting,
        "gpu": _gpu,
    }
)
"""By the name that `--contest` takes."""
