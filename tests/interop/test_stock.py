"""The stock tools open what we write, without us."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from packer.convert import convert
from packer.image_policy import Decode
from packer.options import ConvertOptions
from readers.opening import open_dataset
from readers.sample import Sample
from tests.conftest import Run
from tests.trees import PACKINGS, MemorySource, Packing, image_bytes, jpeg

_KEYS = (
    *("cat/img.0001", "cat/img.0002", "cat/img", "dog/22.05", "dog/__x__", "été/猫 001"),
    *("a/100%", "a/tab\tnew\nline", "k" * 120 + "/" + "m" * 120, "d/" * 300 + "deep"),
)
_SAMPLES = [
    Sample(
        key,
        jpeg(n, (0, 1900, 5000, 70_000)[n % 4], 12, 16 + n),
        n % 3,
        {"n": n, "s": f"é {n}"},
        f"{key}.jpg",
    )
    for n, key in enumerate(_KEYS)
]
_SOURCE = MemorySource(_SAMPLES, ("x", "y", "z"), {"n": "int", "s": "string"})


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, format: Packing) -> Path:
    path = tmp_path_factory.mktemp("packed") / str(format)
    options = ConvertOptions(image=format.policy, shard_samples=6)
    convert(_SOURCE, path, format=format.name, options=options)
    return path


def shards(path: Path) -> list[Path]:
    with open_dataset(path) as dataset:
        return [path / shard.name for shard in dataset.manifest.shards]


def images(format: Packing) -> list[bytes]:
    return [format.stored(image_bytes(sample)) for sample in _SAMPLES]


def only(name: str) -> pytest.MarkDecorator:
    """Runs a test for one format alone."""
    chosen = [packing for packing in PACKINGS if packing.name == name]
    return pytest.mark.parametrize("format", chosen, ids=str, indirect=True, scope="session")


def test_the_lines_that_we_show_give_the_first_image(
    packed: Path, format: Packing, run: Run
) -> None:
    told = run("formats", format.name, "--json")
    lines = json.loads(told.out)["stock"]
    assert all(f"    {line}\n" in run("formats", format.name).out for line in lines.splitlines())
    for shard, first in zip(shards(packed), (0, 6), strict=True):
        code = f"shard = {str(shard)!r}\n{lines}\nimport sys\nsys.stdout.buffer.write(bytes(image))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        if format.name == "lmdb":  # in the order of its keys
            assert done.stdout in images(format)[first : first + 6]
        else:
            assert done.stdout == images(format)[first]


@pytest.mark.parametrize(
    "format", [one for one in PACKINGS if one.pixels], ids=str, indirect=True, scope="session"
)
@pytest.mark.parametrize("size", [None, (8, 10)], ids=["mixed", "fixed"])
def test_the_lines_that_we_show_read_pixels(
    tmp_path: Path, format: Packing, size: tuple[int, int] | None
) -> None:
    options = ConvertOptions(image=Decode(size=size))
    convert(_SOURCE, tmp_path / "o", format=format.name, options=options)
    code = f"shard = {str(shards(tmp_path / 'o')[0])!r}\n{format.entry.stock}\nprint(image.shape)"
    if format.name == "hdf5" and size is None:
        code = code.replace("print(image.shape)", "print((12, 16, 3) if len(image) == 576 else 0)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (f"{(*(size or (12, 16)), 3)}\n".encode(), b"")


@only("lmdb")
def test_lmdb_reads_and_changes_a_shard(packed: Path, tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    wanted: dict[str, dict[bytes, bytes]] = {"image": {}, "label": {}, "extra": {}}
    found: dict[str, dict[bytes, bytes]] = {"image": {}, "label": {}, "extra": {}}
    for shard in shards(packed):
        with lmdb.open(str(shard), subdir=False, readonly=True, lock=False, max_dbs=3) as stock:
            for field in found:
                database = stock.open_db(field.encode(), create=False)
                with stock.begin(db=database) as transaction:
                    held = dict(transaction.cursor())
                    assert transaction.stat(database)["entries"] == len(held) <= 6
                    assert list(held) == sorted(held)
                    assert all(transaction.get(key) == value for key, value in held.items())
                    assert dict(transaction.cursor().iterprev()) == held
                    found[field] |= held
            assert (stock.info()["last_pgno"] + 1) * 4096 == shard.stat().st_size
    for sample in _SAMPLES:
        key = sample.key.encode()
        if len(key) > 511:
            key = next(one for one in found["image"] if one.startswith(key[:400]))
        wanted["image"][key] = image_bytes(sample)
        wanted["label"][key] = str(sample.label).encode()
        wanted["extra"][key] = json.dumps(sample.extra).encode()
    assert found == wanted
    _change_with_lmdb(shards(packed)[0], tmp_path)


def _change_with_lmdb(shard: Path, place: Path) -> None:
    code = """
import lmdb, shutil, sys
shard, copy, compact = sys.argv[1:]
shutil.copyfile(shard, copy)
with lmdb.open(copy, subdir=False, max_dbs=3, map_size=1 << 26) as env:
    images = env.open_db(b"image")
    with env.begin(db=images) as read:
        before = dict(read.cursor())
    keys = list(before)
    with env.begin(write=True, db=images) as write:
        for number in range(300):
            write.put(b"new %d" % number, bytes([number % 256]) * (number * 40))
        assert all(write.delete(key) for key in keys[::2])
        write.put(keys[1], b"changed")
    env.copy(compact, compact=True)
    after = before | {keys[1]: b"changed"}
    after |= {b"new %d" % n: bytes([n % 256]) * (n * 40) for n in range(300)}
    for key in keys[::2]:
        del after[key]
    with env.begin(db=images) as read:
        assert dict(read.cursor()) == after
with lmdb.open(compact, subdir=False, readonly=True, lock=False, max_dbs=3) as env:
    with env.begin(db=env.open_db(b"image", create=False)) as read:
        assert dict(read.cursor()) == after
    with env.begin(db=env.open_db(b"label", create=False)) as read:
        assert len(dict(read.cursor())) == len(before)
"""
    arguments = [str(shard), str(place / "copy.mdb"), str(place / "compact.mdb")]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)


@only("lmdb")
def test_lmdb_finds_its_way_in_deep_trees(tmp_path: Path, format: Packing) -> None:
    lmdb = pytest.importorskip("lmdb")
    image = jpeg(0)
    keys = [f"{n:05d}" + "k" * (n % 13 * 38) for n in range(4000)]
    samples = [Sample(key, image, None, {}, key) for key in keys]
    convert(MemorySource(samples), tmp_path / "o", format=format.name)
    with (
        lmdb.open(
            str(tmp_path / "o/shard-000000.mdb"), subdir=False, readonly=True, lock=False, max_dbs=1
        ) as stock,
        stock.begin(db=stock.open_db(b"image", create=False)) as transaction,
    ):
        assert transaction.stat(stock.open_db(b"image", create=False))["depth"] >= 3
        assert [key.decode() for key in transaction.cursor().iternext(values=False)] == keys
        assert all(transaction.get(key.encode()) == image for key in keys)
        cursor = transaction.cursor()
        assert cursor.set_range(b"02000")
        assert cursor.key().startswith(b"02000")


@only("webdataset")
def test_webdataset_reads_every_sample(packed: Path) -> None:
    paths = [str(shard) for shard in shards(packed)]
    code = """
import json, sys, webdataset
found = []
for sample in webdataset.WebDataset(sys.argv[1:], shardshuffle=False):
    fields = {name for name in sample if not name.startswith("__")}
    assert fields == {"jpg", "cls", "json"}, fields
    found.append([sample["jpg"].hex(), int(sample["cls"]), json.loads(sample["json"])])
decoded = webdataset.WebDataset(sys.argv[1:], shardshuffle=False).decode("rgb8")
shapes = [sample["jpg"].shape for sample in decoded.to_tuple("jpg").map(lambda s: {"jpg": s[0]})]
print(json.dumps([found, shapes]))
"""
    pytest.importorskip("webdataset")
    done = subprocess.run(
        [sys.executable, "-c", code, *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found, shapes = json.loads(done.stdout)
    assert found == [[image_bytes(s).hex(), s.label, s.extra] for s in _SAMPLES]
    assert shapes == [[12, 16 + n, 3] for n in range(len(_SAMPLES))]


@only("webdataset")
def test_tar_tools_read_every_member(packed: Path) -> None:
    count = 0
    for shard in shards(packed):
        with tarfile.open(shard) as archive:
            members = archive.getmembers()
            names = [member.name for member in members]
            for member in members:
                assert member.isfile()
                assert (member.uid, member.gid, member.mtime, member.uname) == (0, 0, 0, "")
                opened = archive.extractfile(member)
                assert opened is not None
                if member.name.endswith(".jpg"):
                    assert opened.read() == image_bytes(_SAMPLES[count])
                    count += 1
        listed = subprocess.run(
            ["tar", "--quoting-style=literal", "-tf", str(shard)], capture_output=True, check=True
        )
        assert listed.stderr == b""
        assert listed.stdout.decode() == "".join(f"{name}\n" for name in names)
        assert len({name.partition(".")[0] for name in names}) * 3 == len(names)
    assert count == len(_SAMPLES)


@only("hdf5")
def test_h5py_reads_every_dataset(packed: Path, format: Packing) -> None:
    h5py = pytest.importorskip("h5py")
    found: list[tuple[object, ...]] = []
    for shard in shards(packed):
        with h5py.File(shard, "r") as file:
            held = {name: dataset[()] for name, dataset in file.items()}
            for dataset in file.values():
                assert dataset.chunks is None
                assert dataset.compression is None
                assert h5py.check_vlen_dtype(dataset.dtype) is None
                assert dataset.dtype.kind in "iu"
        starts, keys, extras = held["offsets"], held["key_offsets"], held["extra_offsets"]
        for n, label in enumerate(held["label"].tolist()):
            found.append(
                (
                    held["key"][keys[n] : keys[n + 1]].tobytes().decode(),
                    held["image"][starts[n] : starts[n + 1]].tobytes(),
                    label,
                    json.loads(held["extra"][extras[n] : extras[n + 1]].tobytes()),
                )
            )
            if format.pixels:
                assert held["shapes"][n].tolist() == [12, 16 + len(found) - 1, 3]
    assert found == [
        (s.key, format.stored(image_bytes(s)), s.label, dict(s.extra)) for s in _SAMPLES
    ]


@only("npy")
def test_numpy_reads_every_array(packed: Path, format: Packing) -> None:
    found = []
    for shard in shards(packed):
        pixels, offsets, shapes, labels = (
            np.load(shard.with_suffix(suffix), allow_pickle=False, mmap_mode="r")
            for suffix in (".npy", ".offsets.npy", ".shapes.npy", ".labels.npy")
        )
        assert pixels.dtype == np.uint8
        for n, label in enumerate(labels.tolist()):
            image = pixels[offsets[n] : offsets[n + 1]].reshape(shapes[n])
            found.append((image.tobytes(), label))
    assert found == [(format.stored(image_bytes(s)), s.label) for s in _SAMPLES]


@only("npy")
def test_numpy_reads_one_plain_array_of_one_size(tmp_path: Path, format: Packing) -> None:
    options = ConvertOptions(image=Decode(size=(9, 7)))
    convert(_SOURCE, tmp_path / "o", format=format.name, options=options)
    pixels = np.load(tmp_path / "o/shard-000000.npy", allow_pickle=False, mmap_mode="r")
    assert (pixels.shape, pixels.dtype, pixels.flags.c_contiguous) == (
        (len(_SAMPLES), 9, 7, 3),
        np.uint8,
        True,
    )
    with open_dataset(tmp_path / "o") as dataset:
        assert all(image_bytes(s) == p.tobytes() for s, p in zip(dataset, pixels, strict=True))


def test_pyarrow_reads_the_index(packed: Path, format: Packing) -> None:
    with pa.memory_map(str(packed / "index.arrow")) as mapped:
        rows = pa.ipc.open_file(mapped).read_all().to_pylist()
    assert [row["key"] for row in rows] == list(_KEYS)
    assert [row["label"] for row in rows] == [s.label for s in _SAMPLES]
    assert [json.loads(row["extra"]) for row in rows] == [s.extra for s in _SAMPLES]
    places = shards(packed)
    for row, image in zip(rows, images(format), strict=True):
        with places[row["shard"]].open("rb") as shard:
            shard.seek(row["offset"])
            assert shard.read(row["length"]) == image
