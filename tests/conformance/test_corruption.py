"""Damage is found by `verify`, named, and never read as an image, in every format."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from packer.convert import convert
from packer.fault import Fault
from packer.options import ConvertOptions
from packer.verify import verify
from readers.checksum import digest
from readers.dataset import Dataset
from readers.errors import FormatError, PackError, UnsupportedVersionError
from readers.index import SCHEMA
from readers.opening import open_dataset
from readers.sample import Sample
from tests.conftest import Run, one_format
from tests.trees import MemorySource, Packing, contents, image_bytes, jpeg

_ROWS = 9
_BITS_AT_RANDOM = 16

Images = list[tuple[str, bytes]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, format: Packing) -> Path:
    """A small dataset of three shards with labels and extra fields; not to be changed."""
    path = tmp_path_factory.mktemp("whole") / str(format)
    samples = [
        Sample(f"k/{n}", jpeg(n, 0, 8, 12), n % 2, {"note": f"text {n}"}, f"k/{n}.jpg")
        for n in range(_ROWS)
    ]
    samples[4] = samples[4]._replace(image=jpeg(4, 9000, 8, 12))
    source = MemorySource(samples, ("ant", "bee"), {"note": "string"})
    options = ConvertOptions(image=format.policy, shard_samples=3)
    convert(source, path, format=format.name, options=options)
    return path


@pytest.fixture(scope="module")
def images(whole: Path) -> Images:
    with open_dataset(whole) as dataset:
        return [(sample.key, image_bytes(sample)) for sample in dataset]


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def faults_of(path: Path) -> list[Fault]:
    """Gives the faults found, one for a dataset that can't even be opened."""
    try:
        return verify(path, workers=1).faults
    except PackError as error:
        return [Fault(error.message)]


def read_or_refused(path: Path, images: Images) -> int:
    """Reads all; an image is right, or refused by a named error. Gives the number refused."""
    return sum(_refused_of(path, images, copy=copy) for copy in (True, False))


def _refused_of(path: Path, images: Images, *, copy: bool) -> int:
    try:
        with open_dataset(path, copy=copy) as dataset:
            if len(dataset) != len(images):
                with pytest.raises(FormatError):
                    dataset[0]
                return 1
            return sum(not _is_right(dataset, row, images) for row in range(len(images)))
    except FormatError:
        return 1


def _is_right(dataset: Dataset, row: int, images: Images) -> bool:
    try:
        sample = dataset[row]
    except FormatError:
        return False
    assert image_bytes(sample) == images[row][1]
    return True


def _regions(path: Path) -> dict[str, tuple[int, int]]:
    """Finds the images: key to (offset, end) by file name."""
    with open_dataset(path) as dataset:
        index = dataset.index
        names = [shard.name for shard in dataset.manifest.shards]
        return {
            f"{names[index.shards.item(row)]} {index.key(row)}": (
                index.offsets.item(row),
                index.offsets.item(row) + index.lengths.item(row),
            )
            for row in range(len(index))
        }


def _bits(path: Path, name: str, size: int) -> Iterator[tuple[int, int]]:
    """Chooses bits of a file: near its ends and those of its images, and at random."""
    edges = {0, size - 1}
    for place, (start, end) in _regions(path).items():
        if place.startswith(f"{name} "):
            edges |= {start - 1, start, (start + end) // 2, end - 1, end}
    chance = random.Random(name)  # noqa: S311 - no secret
    edges |= {chance.randrange(size) for _ in range(_BITS_AT_RANDOM)}
    return ((byte, chance.randrange(8)) for byte in sorted(edges) if 0 <= byte < size)


def test_every_flipped_bit_is_found_and_named(copy: Path, images: Images) -> None:
    regions = _regions(copy)
    images_in = {place.partition(" ")[0] for place in regions}
    for name, data in contents(copy).items():
        file = copy / name
        for byte, bit in _bits(copy, name, len(data)):
            flipped = bytearray(data)
            flipped[byte] ^= 1 << bit
            file.write_bytes(flipped)
            where = f"{name}, byte {byte}, bit {bit}"
            faults = faults_of(copy)
            assert faults, where
            read_or_refused(copy, images)
            if not name.startswith("shard-"):
                continue
            assert {fault.file for fault in faults} == {name}, where
            assert all(fault.key for fault in faults) or name not in images_in, where
            hit = [place for place, (start, end) in regions.items() if start <= byte < end]
            hit = [place for place in hit if place.startswith(f"{name} ")]
            if hit:
                assert [f"{fault.file} {fault.key}" for fault in faults] == hit, where
                assert faults[0].offset == regions[hit[0]][0], where
            else:
                assert [fault.offset for fault in faults] == [byte], where
        file.write_bytes(data)
    assert faults_of(copy) == []


def test_every_byte_of_manifest_and_index_counts(copy: Path, images: Images) -> None:
    chance = random.Random(1)  # noqa: S311 - no secret
    for name in ("manifest.json", "index.arrow"):
        data = (copy / name).read_bytes()
        for byte in range(0, len(data), 7):
            flipped = bytearray(data)
            flipped[byte] ^= 1 << chance.randrange(8)
            (copy / name).write_bytes(flipped)
            assert faults_of(copy), f"{name}, byte {byte}"
            read_or_refused(copy, images)
        (copy / name).write_bytes(data)


@pytest.mark.parametrize("cut", [1, 2, 500, 0.5, 10**9])
def test_a_cut_file_is_found(copy: Path, images: Images, cut: float) -> None:
    for name, data in contents(copy).items():
        lost = int(cut if cut >= 1 else cut * len(data))
        (copy / name).write_bytes(data[: max(0, len(data) - lost)])
        faults = faults_of(copy)
        assert faults
        if name.startswith("shard-"):
            assert {fault.file for fault in faults} == {name}
        read_or_refused(copy, images)
        (copy / name).write_bytes(data)


def test_a_longer_file_is_found(copy: Path, images: Images) -> None:
    for name, data in contents(copy).items():
        (copy / name).write_bytes(data + b"\n")
        assert faults_of(copy), name
        read_or_refused(copy, images)
        (copy / name).write_bytes(data)


def test_a_missing_file_is_found(copy: Path, images: Images) -> None:
    for name, data in contents(copy).items():
        (copy / name).unlink()
        faults = faults_of(copy)
        assert faults
        if name.startswith("shard-"):
            assert {fault.file for fault in faults} == {name}
        if name != "manifest.json":
            read_or_refused(copy, images)
        (copy / name).write_bytes(data)


def test_something_else_in_the_place_of_a_file_is_found(copy: Path, images: Images) -> None:
    for name, data in contents(copy).items():
        (copy / name).unlink()
        (copy / name).mkdir()
        assert faults_of(copy), name
        if name != "manifest.json":
            assert all(_refused(copy, row) for row in range(len(images)) if name == "index.arrow")
        (copy / name).rmdir()
        (copy / name).write_bytes(data)


def _refused(path: Path, row: int) -> bool:
    with open_dataset(path) as dataset, pytest.raises(PackError):
        dataset[row]
    return True


def test_swapped_shards_are_found(copy: Path, images: Images) -> None:
    with open_dataset(copy) as dataset:
        first, second = (copy / shard.name for shard in dataset.manifest.shards[:2])
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    assert {fault.file for fault in faults_of(copy)} == {first.name, second.name}
    assert read_or_refused(copy, images) > 0


def test_swapped_samples_of_one_size_are_found(tmp_path: Path, format: Packing) -> None:
    size = max(len(jpeg(n)) for n in range(6)) + 8
    samples = [Sample(f"{n}", jpeg(n, size), None, {}, f"{n}.jpg") for n in range(6)]
    samples = [s for s in samples if len(bytes(s.image)) == size]
    assert len(samples) > 2
    options = ConvertOptions(image=format.policy)
    convert(MemorySource(samples), tmp_path / "o", format=format.name, options=options)
    with open_dataset(tmp_path / "o") as dataset:
        shard = dataset.root / dataset.manifest.shards[0].name
        offsets, length = dataset.index.offsets.tolist(), dataset.index.lengths.item(0)
        keys = [sample.key for sample in dataset]
        wanted = [(sample.key, image_bytes(sample)) for sample in dataset]
    data = bytearray(shard.read_bytes())
    one, other = (slice(offset, offset + length) for offset in offsets[:2])
    data[one], data[other] = data[other], data[one]
    shard.write_bytes(data)
    assert [
        (f.file, f.offset, f.key) for f in sorted(faults_of(tmp_path / "o"), key=str)
    ] == sorted(
        [(shard.name, offsets[0], keys[0]), (shard.name, offsets[1], keys[1])],
        key=lambda found: f"{found[0]}, byte {found[1]}",
    )
    assert read_or_refused(tmp_path / "o", wanted) == 4


def test_zeroed_blocks_are_found(copy: Path, images: Images) -> None:
    for name, data in contents(copy).items():
        for start in range(0, len(data), 4096):
            block = data[start : start + 4096]
            if not block.strip(b"\0"):
                continue
            (copy / name).write_bytes(data[:start] + bytes(len(block)) + data[start + 4096 :])
            assert faults_of(copy), f"{name}, block at {start}"
            read_or_refused(copy, images)
        (copy / name).write_bytes(data)


def test_the_command_names_shard_offset_and_key(copy: Path, run: Run) -> None:
    with open_dataset(copy) as dataset:
        shard, offset = dataset.manifest.shards[1].name, dataset.index.offsets.item(4)
    data = bytearray((copy / shard).read_bytes())
    data[offset + 3] ^= 1
    (copy / shard).write_bytes(data)
    told = run("verify", copy)
    assert told.status == 1
    assert f"{shard}, byte {offset}, sample 'k/4'" in told.out
    fault = json.loads(run("verify", "--json", copy).out)["faults"][0]
    assert (fault["file"], fault["offset"], fault["key"]) == (shard, offset, "k/4")
    refused = run("inspect", copy, 4)
    assert refused.status == 1
    assert all(word in refused.err for word in (shard, str(offset), "k/4"))


def _rewrite(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes the manifest as somebody with bad intent would: with the right checksum."""
    file = path / "manifest.json"
    raw = json.loads(file.read_text(encoding="utf-8"))
    del raw["checksum"]
    change(raw)
    body = json.dumps(raw, indent=1).removesuffix("\n}")
    seal = digest(body.encode()).hex()
    file.write_text(f'{body},\n "checksum": "{seal}"\n}}\n', encoding="utf-8")


def _set(key: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda raw: raw.update({key: value})


def _of_shard(key: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda raw: raw["shards"][0]["files"][0].update({key: value})


def _many_samples(raw: dict[str, Any]) -> None:
    raw["shards"][0]["samples"] += 10**15
    raw["samples"] += 10**15


HOSTILE: dict[str, Callable[[dict[str, Any]], object]] = {
    "samples": _set("samples", 10),
    "many samples": _many_samples,
    "negative samples": lambda raw: raw["shards"][0].update(samples=-3),
    "path out": _of_shard("name", "../../etc/passwd"),
    "absolute path": _of_shard("name", "/etc/passwd"),
    "nul in name": _of_shard("name", "a\0b"),
    "the index as a shard": _of_shard("name", "index.arrow"),
    "negative bytes": _of_shard("bytes", -1),
    "huge bytes": _of_shard("bytes", 1 << 62),
    "beyond 64 bits": _of_shard("bytes", 1 << 70),
    "bytes as text": _of_shard("bytes", "12"),
    "no bytes": _of_shard("bytes", None),
    "other checksum": _of_shard("checksum", "00" * 16),
    "no shards": _set("shards", []),
    "shard without files": lambda raw: raw["shards"][0].update(files=[]),
    "huge index": lambda raw: raw["index"].update(bytes=1 << 62),
    "manifest as index": lambda raw: raw["index"].update(name="manifest.json"),
    "no classes": _set("classes", []),
    "few classes": _set("classes", ["ant"]),
    "classes as number": _set("classes", 7),
    "pixels": lambda raw: raw.update(pixels=not raw["pixels"]),
    "unknown format": _set("format", "no such"),
    "format as list": _set("format", []),
    "no options": _set("options", {}),
    "no image policy": lambda raw: raw["options"].update(image=None),
    "ledger of numbers": _set("ledger", [1]),
    "deep": _set("source", json.loads("[" * 900 + "]" * 900)),
    "fields as list": _set("fields", ["note"]),
}


@one_format
@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_manifest_is_refused_in_words(
    copy: Path, images: Images, run: Run, change: Callable[[dict[str, Any]], object]
) -> None:
    _rewrite(copy, change)
    for arguments in (("verify", copy), ("inspect", copy), ("inspect", copy, 0)):
        told = run(*arguments)
        assert told.status in {0, 1}
        assert "Traceback" not in told.err
        assert told.status == 1 or arguments[0] == "inspect"
    with suppress(PackError):
        read_or_refused(copy, images)


@one_format
@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1", "\xff", "[" * 100_000, '{"a": 1}'])
def test_a_manifest_that_is_none_is_refused_in_words(copy: Path, run: Run, text: str) -> None:
    (copy / "manifest.json").write_text(text, encoding="latin-1")
    told = run("verify", copy)
    assert (told.status, told.out) == (1, "")
    assert told.err.splitlines()[-1].startswith("packer: ")
    assert "manifest.json" in told.err
    with pytest.raises(FormatError):
        open_dataset(copy)


@pytest.mark.parametrize("key", ["version", "reader_version"])
def test_a_newer_dataset_asks_for_a_newer_library(copy: Path, key: str) -> None:
    _rewrite(copy, lambda raw: raw.update({key: 99, "unheard of": 1}))
    with pytest.raises(UnsupportedVersionError, match="upgrade"):
        open_dataset(copy)


def _change_index(path: Path, column: str, row: int, value: object) -> None:
    """Changes a value in the index and leaves the file's size and the manifest as they are."""
    file = path / "index.arrow"
    size = file.stat().st_size
    with pa.memory_map(str(file)) as mapped:
        batch = pa.ipc.open_file(mapped).get_batch(0)
        values = batch.column(column).to_pylist()
    values[row] = value
    at = SCHEMA.get_field_index(column)
    changed = batch.set_column(at, SCHEMA.field(at), pa.array(values, SCHEMA.field(at).type))
    with pa.ipc.new_file(str(file), SCHEMA) as writer:
        writer.write_batch(changed)
    if file.stat().st_size != size:
        _rewrite(path, lambda raw: raw["index"].update(bytes=file.stat().st_size))


INDEX_CHANGES = [
    ("shard", 1_000_000),
    ("shard", -1),
    ("shard", 2),
    ("offset", -1),
    ("offset", 2**62),
    ("offset", 0),
    ("length", -1),
    ("length", 2**62),
    ("length", 0),
    ("height", -1),
    ("height", 2**30),
    ("width", 2**30),
    ("label", 7),
    ("label", -5),
    ("type", 99),
    ("type", -1),
    ("key", "k/1"),
    ("extra", "{"),
    ("extra", "[1]"),
    ("checksum", bytes(16)),
    ("path", b"../../x"),
]


@one_format
@pytest.mark.parametrize(("column", "value"), INDEX_CHANGES, ids=str)
def test_a_hostile_index_is_refused_in_words(
    copy: Path, images: Images, run: Run, column: str, value: object
) -> None:
    _change_index(copy, column, 0, value)
    told = run("verify", copy)
    assert told.status == 1
    assert "Traceback" not in told.err
    for index in (0, 1):
        told = run("inspect", copy, index)
        assert told.status in {0, 1}
        assert "Traceback" not in told.err
    read_or_refused(copy, images)
    if column == "label":
        with open_dataset(copy) as dataset, pytest.raises(FormatError):
            dataset[0]


def test_a_whole_dataset_has_no_faults(whole: Path, run: Run) -> None:
    assert faults_of(whole) == []
    before = hashlib.sha256(repr(contents(whole)).encode()).hexdigest()
    assert run("verify", whole).status == 0
    assert hashlib.sha256(repr(contents(whole)).encode()).hexdigest() == before
