"""pyarrow, Hugging Face `datasets`, `tfrecord` and DALI open what we write, without us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from packer.convert import convert
from packer.options import ConvertOptions
from readers.layout import arrow, parquet
from readers.opening import open_dataset
from readers.sample import JsonValue, Sample
from tests.trees import MemorySource, image_bytes, jpeg

_FIELDS = {"n": "int", "s": "string", "f": "float", "b": "bool", "j": "json", "label": "string"}
_CLASSES = ("x", "y", "z")


def _extra(n: int) -> dict[str, JsonValue]:
    return {
        "n": n - 3,
        "s": f"é {n}" if n % 4 else None,
        "f": n / 2 if n != 3 else None,
        "b": bool(n & 1),
        "j": [n, {"a": None}],
        "label": "not the label",
    }


_SAMPLES = [
    Sample(
        f"k/{n}",
        jpeg(n, (0, 1900, 70_000)[n % 3], 12, 16 + n),
        None if n == 4 else n % 3,
        _extra(n),
        f"k/{n}.jpg",
    )
    for n in range(10)
]


def _packed(folder: Path, format: str) -> list[str]:
    options = ConvertOptions(shard_samples=6)
    source = MemorySource(_SAMPLES, _CLASSES, _FIELDS)
    convert(source, folder / format, format=format, options=options)
    return [str(file) for file in sorted((folder / format).glob(f"shard-*.{format}"))]


def _run(code: str, *arguments: str) -> str:
    """Runs the stock tool in a process of its own, offline."""
    place = {"PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1", "HOME": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _read_arrow(file: str) -> pa.Table:
    with pa.memory_map(file) as mapped:
        return pa.ipc.open_file(mapped).read_all()


_READ: dict[str, Callable[[str], pa.Table]] = {"arrow": _read_arrow, "parquet": pq.read_table}
_TABLES = pytest.mark.parametrize("format", _READ)


@_TABLES
def test_pyarrow_reads_every_column_with_its_type(tmp_path: Path, format: str) -> None:
    tables = [_READ[format](file) for file in _packed(tmp_path, format)]
    table = pa.concat_tables(tables)
    table.validate(full=True)
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("image", "struct<bytes: binary, path: string>"),
        ("label", "int64"),
        ("key", "string"),
        ("n", "int64"),
        ("s", "string"),
        ("f", "double"),
        ("b", "bool"),
        ("j", "string"),
        ("field/label", "string"),
    ]
    wanted: list[dict[str, object]] = [
        {
            "image": {"bytes": image_bytes(s), "path": s.path},
            "label": s.label,
            "key": s.key,
            **{name: s.extra[name] for name in ("n", "s", "f", "b")},
            "j": json.dumps(s.extra["j"]),
            "field/label": s.extra["label"],
        }
        for s in _SAMPLES
    ]
    assert table.to_pylist() == wanted


@_TABLES
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    rows=st.lists(
        st.tuples(
            st.binary(max_size=2000),
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.booleans(),
            st.none() | st.text(max_size=20),
        ),
        min_size=1,
        max_size=40,
    ),
    part=st.integers(1, 8000),
)
def test_parts_of_any_size_hold_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    format: str,
    rows: list[tuple[bytes, int | None, bool | None, str | None]],
    part: int,
) -> None:
    folder = tmp_path_factory.mktemp("any")
    samples = [
        Sample(f"{at}", jpeg(0) + tail, None, {"n": n, "b": b, "t": t}, f"{at}.jpg")
        for at, (tail, n, b, t) in enumerate(rows)
    ]
    source = MemorySource(samples, (), {"n": "int", "b": "bool", "t": "string"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "BATCH_BYTES", part)
        patch.setattr(parquet, "GROUP_BYTES", part)
        patch.setattr(parquet, "PAGE_BYTES", part // 3)
        convert(source, folder / "o", format=format)
    file = folder / f"o/shard-000000.{format}"
    table = _READ[format](str(file))
    table.validate(full=True)
    texts = [t if t is None else t.encode("utf-8", "backslashreplace").decode() for *_, t in rows]
    assert table["n"].to_pylist() == [n for _, n, _, _ in rows]
    assert table["b"].to_pylist() == [b for _, _, b, _ in rows]
    assert table["t"].to_pylist() == texts
    assert [one["bytes"] for one in table["image"].to_pylist()] == [s.image for s in samples]
    with open_dataset(folder / "o") as dataset:
        assert [sample.image for sample in dataset] == [s.image for s in samples]


class _Thrift:
    """Parses any struct of the compact protocol: values by the numbers of their fields."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def value(self, kind: int) -> Any:  # noqa: ANN401 - whatever is there
        if kind in {1, 2}:
            return kind == 1
        if kind in {5, 6}:
            value = self.number()
            return (value >> 1) ^ -(value & 1)
        if kind == 8:
            size = self.number()
            self.at += size
            return self.data[self.at - size : self.at]
        if kind == 9:
            head = self.byte()
            size = head >> 4 if head >> 4 < 15 else self.number()
            return [self.value(head & 15) for _ in range(size)]
        assert kind == 12
        return self.struct()

    def struct(self) -> dict[int, Any]:
        fields, number = {}, 0
        while head := self.byte():
            number += head >> 4
            fields[number] = self.value(head & 15)
        return fields


def test_the_offset_index_finds_the_page_of_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "PAGE_BYTES", 3000)
    monkeypatch.setattr(parquet, "GROUP_BYTES", 80_000)
    samples = iter(_SAMPLES)
    pages = 0
    for file in _packed(tmp_path, "parquet"):
        data = Path(file).read_bytes()
        footer = _Thrift(data, len(data) - 8 - int.from_bytes(data[-8:-4], "little")).struct()
        for group in footer[4]:
            for chunk in group[1]:
                index = _Thrift(data, chunk[4])
                places = index.struct()[1]
                assert index.at == chunk[4] + chunk[5]
                assert places[0][1] == chunk[3][9]
                assert sum(place[2] for place in places) == chunk[3][7]
                rows = [place[3] for place in places] + [group[3]]
                for place, first, last in zip(places, rows, rows[1:], strict=False):
                    page = _Thrift(data, place[1])
                    head = page.struct()
                    assert head[5][1] == last - first
                    assert page.at + head[3] == place[1] + place[2]
                    if chunk[3][3] == [b"image", b"bytes"]:
                        pages += 1
                        for _ in range(last - first):
                            sample = image_bytes(next(samples))
                            assert sample in data[place[1] : place[1] + place[2]]
    assert next(samples, None) is None
    assert pages > 6


@_TABLES
def test_datasets_reads_images_labels_and_fields(tmp_path: Path, format: str) -> None:
    pytest.importorskip("datasets")
    code = """
import datasets, json, sys
format, cache, *files = sys.argv[1:]
told = []
for streaming in (False, True):
    rows = datasets.load_dataset(
        format, data_files=files, split="train", cache_dir=cache, streaming=streaming
    )
    assert rows.features["label"].names == ["x", "y", "z"]
    assert isinstance(rows.features["image"], datasets.Image)
    sizes = [row["image"].size for row in rows]
    plain = rows.cast_column("image", datasets.Image(decode=False))
    told.append([sizes, [[r["image"]["bytes"].hex(), r["label"], r["n"], r["b"]] for r in plain]])
assert told[0] == told[1]
print(json.dumps(told[0]))
"""
    sizes, found = json.loads(
        _run(code, format, str(tmp_path / "cache"), *_packed(tmp_path, format))
    )
    assert sizes == [[16 + n, 12] for n in range(10)]
    assert found == [[image_bytes(s).hex(), s.label, s.extra["n"], s.extra["b"]] for s in _SAMPLES]


def test_the_tfrecord_package_reads_every_feature(tmp_path: Path) -> None:
    pytest.importorskip("tfrecord")
    code = """
import json, pathlib, sys, tfrecord
from tfrecord.tools.tfrecord2idx import create_index
found = []
for file in sys.argv[2:]:
    create_index(file, sys.argv[1])
    assert pathlib.Path(sys.argv[1]).read_text() == pathlib.Path(file + ".idx").read_text()
    parts = [
        [dict(row) for row in tfrecord.tfrecord_loader(file, file + ".idx", shard=(n, 2))]
        for n in range(2)
    ]
    whole = [dict(row) for row in tfrecord.tfrecord_loader(file, None)]
    assert repr(parts[0] + parts[1]) == repr(whole)
    for row in whole:
        image = row.pop("image/encoded")
        found.append([image.hex(), {
            name: value.decode() if isinstance(value, bytes) else value.tolist()
            for name, value in row.items()
        }])
print(json.dumps(found))
"""
    found = json.loads(_run(code, str(tmp_path / "index"), *_packed(tmp_path, "tfrecord")))
    for (image, features), sample in zip(found, _SAMPLES, strict=True):
        assert bytes.fromhex(image) == sample.image
        n = sample.extra["n"]
        wanted = {
            "image/filename": sample.path,
            "image/source_id": sample.key,
            "image/format": "jpeg",
            "image/height": [12],
            "image/width": [16 + int(sample.key[2:])],
            "image/class/label": [-1 if sample.label is None else sample.label],
            "image/class/text": "" if sample.label is None else _CLASSES[sample.label],
            "n": [n],
            "s": sample.extra["s"],
            "f": sample.extra["f"] if sample.extra["f"] is None else [sample.extra["f"]],
            "b": [int(bool(sample.extra["b"]))],
            "j": json.dumps(sample.extra["j"]),
            "label": "not the label",
        }
        assert features == {name: value for name, value in wanted.items() if value is not None}


def test_dali_reads_records_by_our_index(tmp_path: Path) -> None:
    pytest.importorskip("nvidia.dali")
    code = """
import json, sys
from nvidia.dali import fn, pipeline_def, tfrecord
files = sys.argv[1:]
@pipeline_def(batch_size=10, num_threads=1, device_id=None)
def pipeline():
    features = {
        "image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
    }
    row = fn.readers.tfrecord(
        path=files, index_path=[file + ".idx" for file in files], features=features
    )
    return row["image/encoded"], row["image/class/label"]
built = pipeline()
built.build()
images, labels = built.run()
print(json.dumps([[bytes(images.at(n)).hex(), int(labels.at(n)[0])] for n in range(10)]))
"""
    found = json.loads(_run(code, *_packed(tmp_path, "tfrecord")))
    assert found == [[image_bytes(s).hex(), -1 if s.label is None else s.label] for s in _SAMPLES]
