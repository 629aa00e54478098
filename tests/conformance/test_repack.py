"""Any dataset is a source: every format into every other that can hold it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from packer.compare import compare
from packer.convert import convert
from packer.image_policy import Decode, ImagePolicy, Reencode
from packer.options import ConvertOptions
from packer.sources.opening import open_source
from packer.verify import verify
from readers.decode import decode
from readers.errors import OptionError
from readers.opening import open_dataset
from readers.sample import Sample
from tests.conftest import Run
from tests.trees import (
    PACKINGS,
    MemorySource,
    Packing,
    contents,
    image_bytes,
    jpeg,
    turned,
    write_tree,
)

_SAMPLES = [
    Sample(
        f"k/{n} é",
        turned(jpeg(n, 0, 10 + n, 20), 1 + n % 8),
        n % 3,
        {"n": n, "s": f"text {n}"},
        f"k/{n} é.jpeg",
    )
    for n in range(11)
]
_SOURCE = MemorySource(_SAMPLES, ("a", "b", "c", "empty"), {"n": "int", "s": "string"})


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, format: Packing) -> Path:
    path = tmp_path_factory.mktemp("packed") / str(format)
    options = ConvertOptions(image=format.policy, shard_samples=4)
    convert(_SOURCE, path, format=format.name, options=options)
    return path


def facts(path: Path) -> list[tuple[object, ...]]:
    with open_dataset(path) as dataset:
        return [(s.key, s.label, dict(s.extra), s.path, image_bytes(s)) for s in dataset]


def repack(source: Path, target: Path, to: Packing, policy: ImagePolicy | None) -> None:
    options = ConvertOptions(image=policy, shard_samples=3)
    convert(open_source(source), target, format=to.name, options=options)
    assert verify(target).faults == []
    with open_dataset(target) as dataset:
        assert dataset.classes == _SOURCE.classes
        assert dict(dataset.manifest.fields) == dict(_SOURCE.fields)
        assert dataset.manifest.samples == len(_SAMPLES)


@pytest.mark.parametrize("to", PACKINGS, ids=str)
def test_every_format_becomes_every_other(
    tmp_path: Path, packed: Path, format: Packing, to: Packing
) -> None:
    target = tmp_path / "o"
    if format.pixels and not to.pixels:
        if not to.entry.pixels:
            with pytest.raises(OptionError, match="reencode"):
                repack(packed, target, to, None)
        repack(packed, target, to, Reencode(quality=100, subsampling="444"))
        for before, after in zip(facts(packed), facts(target), strict=True):
            assert before[:-1] == after[:-1]
        with open_dataset(packed) as pixels, open_dataset(target) as files:
            for one, other in zip(pixels, files, strict=True):
                assert isinstance(one.image, np.ndarray)
                error = np.abs(one.image.astype(int) - decode(bytes(other.image)))
                assert error.mean() < 3
        return
    policy = Decode() if to.pixels and not format.pixels else None
    repack(packed, target, to, policy)
    wanted = [
        (s.key, s.label, s.extra, s.path, (to if to.pixels else format).stored(image_bytes(s)))
        for s in _SAMPLES
    ]
    assert facts(target) == wanted


def test_there_and_back_gives_the_same_files(tmp_path: Path, packed: Path, format: Packing) -> None:
    step = packed
    for number, to in enumerate(one for one in PACKINGS if one.pixels == format.pixels):
        repack(step, tmp_path / str(number), to, None)
        step = tmp_path / str(number)
    last = tmp_path / "last"
    options = ConvertOptions(shard_samples=4)
    convert(open_source(step), last, format=format.name, options=options)
    before, after = contents(packed), contents(last)
    for made in (before, after):
        del made["manifest.json"]  # it names the source and the policy
    assert before == after


@pytest.mark.parametrize("to", PACKINGS, ids=str)
def test_equality_is_proved_across_formats(
    tmp_path: Path, packed: Path, format: Packing, to: Packing, run: Run
) -> None:
    other = tmp_path / "other"
    options = ConvertOptions(image=to.policy, shuffle=3)
    convert(_SOURCE, other, format=to.name, options=options)
    told = run("verify", packed, "--against", other, "--json")
    assert told.status == 0, told.out
    assert json.loads(told.out)["compared"] == len(_SAMPLES)
    assert format.name == open_dataset(packed).manifest.format


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"image": jpeg(77, 0, 13, 20)}, "image"),
        ({"label": 2}, "label"),
        ({"label": None}, "label"),
        ({"extra": {"n": 3, "s": "other"}}, "extra fields"),
        ({"key": "another"}, "key"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_difference_is_named(packed: Path, change: dict[str, object], said: str) -> None:
    samples = [*_SAMPLES]
    samples[3] = samples[3]._replace(**change)  # type: ignore[arg-type]  # of any field
    source = MemorySource(samples, _SOURCE.classes, _SOURCE.fields)
    with open_dataset(packed) as dataset:
        faults = compare(dataset, source).faults
    assert len(faults) == 1
    assert faults[0].key == _SAMPLES[3].key
    assert said in faults[0].reason


def test_missing_and_added_samples_are_named(packed: Path) -> None:
    added = Sample("added", jpeg(1), 0, {"n": 1, "s": ""}, "added.jpg")
    source = MemorySource([*_SAMPLES[:5], *_SAMPLES[6:], added], _SOURCE.classes, _SOURCE.fields)
    with open_dataset(packed) as dataset:
        faults = compare(dataset, source).faults
    assert {(fault.key, "missing" in fault.reason) for fault in faults} == {
        (_SAMPLES[5].key, False),
        (None, True),
    }
    assert any("added.jpg" in fault.reason for fault in faults)


def test_other_class_numbers_of_the_same_names_are_equal(packed: Path) -> None:
    order = {0: 2, 1: 1, 2: 0}
    samples = [s._replace(label=order[s.label or 0]) for s in _SAMPLES]
    source = MemorySource(samples, ("c", "b", "a"), _SOURCE.fields)
    with open_dataset(packed) as dataset:
        assert compare(dataset, source).faults == []


def test_a_folder_is_compared_with_what_was_made_of_it(
    tmp_path: Path, tree: Path, dataset: Path, odd: dict[str, bytes], run: Run
) -> None:
    assert run("verify", dataset, "--against", tree, "-q").status == 0
    changed = write_tree(tmp_path / "t", odd)
    (changed / "empty class").mkdir()
    (changed / "a/1.jpg").write_bytes(jpeg(1234, 0, 17, 64))
    (changed / "a/2.JPG").unlink()
    told = run("verify", dataset, "--against", changed, "-q")
    assert told.status == 1
    assert "a/1" in told.out
    assert "a/2.JPG" in told.out
    assert len(told.out.splitlines()) == 4
    assert "is whole" in told.out
    assert "isn't equal" in told.out
