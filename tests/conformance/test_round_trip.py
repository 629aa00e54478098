"""What goes in comes out, in every format."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from packer.convert import convert
from packer.options import ConvertOptions
from packer.sources.opening import open_source
from packer.verify import verify
from readers.dataset import Dataset
from readers.errors import SourceError
from readers.opening import open_dataset
from readers.sample import JsonValue, Sample
from tests.trees import (
    MemorySource,
    Packing,
    a_sample,
    contents,
    image_bytes,
    jpeg,
    plain_files,
    write_tree,
)


def pack(
    source: MemorySource,
    path: Path,
    format: Packing,
    options: ConvertOptions = ConvertOptions(),  # noqa: B008 - immutable
) -> Dataset:
    options = replace(options, image=format.policy)
    convert(source, path, format=format.name, options=options)
    assert verify(path).faults == []
    return open_dataset(path)


def test_a_tree_comes_back_whole(dataset: Path, odd: dict[str, bytes], format: Packing) -> None:
    with open_dataset(dataset) as packed:
        samples = [packed[row] for row in range(len(packed))]
        classes = tuple(sorted({*(name.partition("/")[0] for name in odd), "empty class"}))
        assert packed.classes == classes
        assert [sample.path for sample in samples] == _in_order(odd)
        assert [image_bytes(sample) for sample in samples] == [
            format.stored(odd[sample.path]) for sample in samples
        ]
        labels = [classes.index(sample.path.partition("/")[0]) for sample in samples]
        assert [sample.label for sample in samples] == labels == packed.labels.tolist()
        assert len({sample.key for sample in samples}) == len(samples)
        assert all(sample.extra == {} for sample in samples)
        assert [shard.samples for shard in packed.manifest.shards][:-1] == [8] * (
            len(packed.manifest.shards) - 1
        )
    named = {sample.path: sample.key for sample in samples}
    assert named["a/1.jpg"] == "a/1"
    assert named["a/2.x.jpeg"] == "a/2.x"
    assert named["été/猫 001.jpg"] == "été/猫 001"
    assert named["été/stray\udcff.jpg"] != named["été/%FF.jpg"]


def _in_order(files: dict[str, bytes]) -> list[str]:
    """Sorts as the folder source does: files of a folder before its sub-folders, by bytes."""

    def place(name: str) -> list[tuple[bool, bytes]]:
        *folders, file = os.fsencode(name).split(b"/")
        return [*((True, folder) for folder in folders), (False, file)]

    return sorted(files, key=place)


def test_pixels_have_their_shape(tree: Path, dataset: Path, format: Packing) -> None:
    with open_dataset(dataset) as packed, open_dataset(dataset, copy=False) as views:
        for row, sample in enumerate(packed):
            if not format.pixels:
                assert isinstance(sample.image, bytes)
                assert isinstance(views[row].image, memoryview)
                continue
            for image in (sample.image, views[row].image):
                assert isinstance(image, np.ndarray)
                assert image.dtype == np.uint8
                assert image.shape[2] == 3
                assert image.tobytes() == format.stored((tree / sample.path).read_bytes())


def test_one_sample(tmp_path: Path, format: Packing) -> None:
    with pack(MemorySource([a_sample(1)], ("x",)), tmp_path / "one", format) as packed:
        assert len(packed) == 1
        assert image_bytes(packed[0]) == image_bytes(packed[-1]) == format.stored(jpeg(1))
        with pytest.raises(IndexError):
            packed[1]


def test_nothing_to_pack_is_said_and_leaves_nothing(tmp_path: Path, format: Packing) -> None:
    with pytest.raises(SourceError, match="no files"):
        pack(MemorySource([]), tmp_path / "none", format)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("samples", [1, 6, 7, 8, 13, 14, 15])
def test_shards_hold_as_many_samples_as_asked(
    tmp_path: Path, format: Packing, samples: int
) -> None:
    source = MemorySource([a_sample(number) for number in range(samples)], ("x",))
    with pack(source, tmp_path / "o", format, ConvertOptions(shard_samples=7, workers=8)) as packed:
        held = [shard.samples for shard in packed.manifest.shards]
        assert sum(held) == samples
        assert held == [7] * (samples // 7) + [samples % 7] * (samples % 7 > 0)
        assert [sample.key for sample in packed] == [sample.key for sample in source.samples]


def test_shards_stay_below_the_size_asked(tmp_path: Path, format: Packing) -> None:
    sizes = (0, 40_000, 20_000, 100_000, 0, 0, 39_000, 41_000, 1000, 250_000, 0)
    samples = [
        a_sample(number, data=jpeg(number, 0, 1 + size // 300, 100))
        if format.pixels
        else a_sample(number, data=jpeg(number, size))
        for number, size in enumerate(sizes)
    ]
    with pack(
        MemorySource(samples, ("x",)), tmp_path / "o", format, ConvertOptions(shard_size=80_000)
    ) as packed:
        shards = packed.manifest.shards
        assert len(shards) > 3
        assert [s.samples for s in shards if s.files[0].bytes > 80_000 + 12_288] == [1, 1]
        assert [image_bytes(sample) for sample in packed] == [
            format.stored(image_bytes(sample)) for sample in samples
        ]


def test_extra_fields_come_back(tmp_path: Path, format: Packing) -> None:
    extras: list[dict[str, JsonValue]] = [
        {"i": 1, "s": "é\n\0", "f": 0.1, "b": True, "j": [1, {"a": None}]},
        {"i": -(2**63), "s": "", "f": 1e300, "b": False, "j": {}},
        {"i": None, "s": None, "f": None, "b": None, "j": None},
    ]
    kinds = {"i": "int", "s": "string", "f": "float", "b": "bool", "j": "json"}
    samples = [a_sample(n)._replace(extra=extra, label=None) for n, extra in enumerate(extras)]
    with pack(MemorySource(samples, fields=kinds), tmp_path / "o", format) as packed:
        assert [sample.extra for sample in packed] == extras
        assert dict(packed.manifest.fields) == kinds
        assert [sample.label for sample in packed] == [None] * 3
        assert packed.labels.tolist() == [-1] * 3


def test_a_list_comes_back_with_its_columns(tmp_path: Path, format: Packing) -> None:
    files = plain_files(5)
    write_tree(tmp_path / "t", files)
    rows = [
        {"path": name, "label": f"class {n % 2}", "width": n, "note": "a,b\n"}
        for n, name in enumerate(reversed(files))
    ]
    listed = tmp_path / "t" / "list.jsonl"
    listed.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    options = ConvertOptions(image=format.policy)
    convert(open_source(listed), tmp_path / "o", format=format.name, options=options)
    with open_dataset(tmp_path / "o") as packed:
        assert packed.classes == ("class 0", "class 1")
        for row, sample in zip(rows, packed, strict=True):
            assert sample.path == row["path"]
            assert packed.classes[sample.label or 0] == row["label"]
            assert sample.extra == {"width": row["width"], "note": row["note"]}
            assert image_bytes(sample) == format.stored(files[sample.path])


def test_the_manifest_lists_exactly_the_files(dataset: Path) -> None:
    with open_dataset(dataset) as packed:
        manifest = packed.manifest
    listed = {file.name: file.bytes for shard in manifest.shards for file in shard.files}
    for table in (manifest.index, manifest.segments):
        if table is not None:
            listed[table.name] = table.bytes
    found = {name: len(data) for name, data in contents(dataset).items()}
    del found["manifest.json"]
    assert found == listed


_KEYS = st.text(
    st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=12
)
_PATHS = st.lists(_KEYS, min_size=1, max_size=3).map("/".join)
_LONG = st.builds(lambda key, times: (key * times)[:700], _PATHS, st.integers(1, 200))
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def sources(draw: st.DrawFn) -> MemorySource:
    keys = draw(st.lists(_PATHS | _LONG, min_size=1, max_size=12, unique=True))
    labelled, extra = draw(st.booleans()), draw(st.booleans())
    samples = [
        Sample(
            key,
            jpeg(
                draw(st.integers(0, 9)),
                draw(st.sampled_from((0, 1900, 2040, 4080, 4096, 9000, 130_000))),
                draw(st.integers(1, 20)),
                draw(st.integers(1, 20)),
            ),
            draw(st.none() | st.integers(0, 2)) if labelled else None,
            draw(st.dictionaries(st.sampled_from(("u", "v", "é")), _JSON)) if extra else {},
            f"{key}.jpg",
        )
        for key in keys
    ]
    kinds = dict.fromkeys(("u", "v", "é"), "json") if extra else {}
    return MemorySource(samples, ("x", "y", "z") if labelled else (), kinds)


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(source=sources(), per_shard=st.integers(1, 5), shuffle=st.none() | st.integers(0, 2**64 - 1))
def test_any_samples_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    format: Packing,
    source: MemorySource,
    per_shard: int,
    shuffle: int | None,
) -> None:
    path = tmp_path_factory.mktemp("any") / "o"
    options = ConvertOptions(image=format.policy, shard_samples=per_shard, shuffle=shuffle)
    convert(source, path, format=format.name, options=options)
    assert verify(path).faults == []
    wanted = {sample.key: sample for sample in source.samples}
    with open_dataset(path) as packed:
        found = list(packed)
        assert len(found) == len(wanted)
        if shuffle is None:
            assert [sample.key for sample in found] == list(wanted)
        for sample in found:
            original = wanted.pop(sample.key)
            assert sample[2:-1] == original[2:-1]
            assert image_bytes(sample) == format.stored(image_bytes(original))
