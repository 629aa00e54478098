"""TFRecord, Parquet and Arrow files that others wrote, as sources."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from packer.convert import convert
from packer.image_policy import Keep
from packer.options import ConvertOptions
from packer.protocols import PackSource
from packer.sources.opening import open_source
from readers.errors import PackError, SampleError, SourceError
from readers.layout import tfrecord as layout
from readers.registry import FORMATS
from readers.sample import Sample
from tests.conftest import Run
from tests.trees import MemorySource, jpeg

_IMAGE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
_OURS = [name for name in ("arrow", "parquet", "tfrecord") if name in FORMATS]


def described(features: Mapping[str, object]) -> dict[str, str]:
    return {"huggingface": json.dumps({"info": {"features": features}})}


def as_parquet(table: pa.Table, file: Path) -> Path:
    pq.write_table(table, file, row_group_size=3)
    return file


def as_arrow(table: pa.Table, file: Path) -> Path:
    with pa.ipc.new_file(str(file), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return file


def as_stream(table: pa.Table, file: Path) -> Path:
    with pa.ipc.new_stream(str(file), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return file


def as_packed_stream(table: pa.Table, file: Path) -> Path:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(str(file), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=3)
    return file


WRITERS: dict[str, tuple[str, Callable[[pa.Table, Path], Path]]] = {
    "parquet": ("parquet", as_parquet),
    "file": ("arrow", as_arrow),
    "stream": ("arrow", as_stream),
    "compressed": ("arrow", as_packed_stream),
}
each_writer = pytest.mark.parametrize(("suffix", "write"), WRITERS.values(), ids=WRITERS)


def records(file: Path, examples: Sequence[Mapping[str, object]]) -> Path:
    """Writes records as TensorFlow would, with the `tfrecord` package's protobuf."""
    example_pb2 = pytest.importorskip("tfrecord.example_pb2")
    crc32c = pytest.importorskip("crc32c").crc32c
    out = b""
    for features in examples:
        example = example_pb2.Example()
        for name, given_ in features.items():
            values = given_ if isinstance(given_, list) else [given_]
            feature = example.features.feature[name]
            kind = {bytes: "bytes_list", int: "int64_list", float: "float_list"}[type(values[0])]
            getattr(feature, kind).value.extend(values)
        data = example.SerializeToString()
        length = struct.pack("<Q", len(data))
        for part in (length, data):
            out += part + struct.pack("<I", layout.masked(crc32c(part)))
    file.write_bytes(out)
    return file


def read(source: PackSource) -> tuple[list[Sample], list[str]]:
    found = [sample_or_error(source, index) for index in range(len(source))]
    samples = [sample for sample in found if isinstance(sample, Sample)]
    return samples, [error.message for error in found if isinstance(error, SampleError)]


def sample_or_error(source: PackSource, index: int) -> Sample | SampleError:
    try:
        return source[index]
    except SampleError as error:
        return error


@each_writer
def test_a_table_of_datasets_comes_with_classes_and_fields(
    tmp_path: Path, suffix: str, write: Callable[[pa.Table, Path], Path]
) -> None:
    table = pa.table(
        {
            "img": pa.array(
                [{"bytes": jpeg(n), "path": f"some where/{n}.jpg"} for n in range(8)], _IMAGE
            ),
            "fine": pa.array([n % 2 for n in range(8)], pa.int8()),
            "caption": [f"text {n}" for n in range(8)],
            "score": [0.5 * n if n else float("nan") for n in range(8)],
            "boxes": [[n, 2 * n] for n in range(8)],
            "when": pa.array([n * 10**9 for n in range(8)], pa.timestamp("ns")),
        }
    ).replace_schema_metadata(
        described(
            {
                "img": {"_type": "Image"},
                "fine": {"_type": "ClassLabel", "names": ["x", "y", "z"]},
            }
        )
    )
    source = open_source(write(table, tmp_path / f"t.{suffix}"))
    assert source.kind == suffix
    assert source.classes == ("x", "y", "z")
    assert source.fields == {"caption": "string", "score": "float", "boxes": "json"}
    samples, errors = read(source)
    assert errors == []
    assert samples[5] == Sample(
        "some where/5",
        jpeg(5),
        1,
        {"caption": "text 5", "score": 2.5, "boxes": [5, 10]},
        "some where/5.jpg",
    )
    assert samples[0].extra["score"] is None
    assert [sample.image for sample in samples] == [jpeg(n) for n in range(8)]
    assert source[-1] == samples[-1]
    assert [note.path for note in source.report.notes] == [f"t.{suffix}"]


@each_writer
def test_a_plain_column_of_bytes_will_do(
    tmp_path: Path, suffix: str, write: Callable[[pa.Table, Path], Path]
) -> None:
    images = [jpeg(0), None, jpeg(2), jpeg(3)]
    table = pa.table({"payload": pa.array(images, pa.large_binary()), "class": list("baba")})
    source = open_source(write(table, tmp_path / f"t.{suffix}"))
    samples, errors = read(source)
    assert source.classes == ("a", "b")
    assert [(s.key, s.label, s.image, s.path) for s in samples] == [
        (f"t/{n:08d}", "ab".index("baba"[n]), images[n], f"t.{suffix}/{n:08d}") for n in (0, 2, 3)
    ]
    assert len(errors) == 1
    assert "sample 1 ('t/00000001')" in errors[0]
    assert "no bytes" in errors[0]
    bare = open_source(write(table.select(["payload"]), tmp_path / f"bare.{suffix}"))
    assert len(read(bare)[0]) == 3


def test_names_that_repeat_give_way_to_rows(tmp_path: Path) -> None:
    for number in range(2):
        rows = [{"bytes": jpeg(number * 2 + n), "path": f"{n}.jpg"} for n in range(2)]
        as_parquet(
            pa.table({"image": pa.array(rows, _IMAGE)}),
            tmp_path / f"train-{number:05d}-of-00002.parquet",
        )
    (tmp_path / "README.md").write_text("about")
    source = open_source(tmp_path)
    assert [sample.key for sample in read(source)[0]] == [
        f"train-{file:05d}-of-00002/{row:08d}" for file in range(2) for row in range(2)
    ]
    assert len({source.path(index) for index in range(4)}) == 4
    assert "names repeat" in source.report.notes[0].reason
    as_parquet(
        pa.table({"image": pa.array(rows, _IMAGE)}), tmp_path / "test-00000-of-00001.parquet"
    )
    with pytest.raises(SourceError, match="holds the sets 'test', 'train'"):
        open_source(tmp_path)


def test_a_table_without_images_says_what_it_has(tmp_path: Path) -> None:
    for name, table in {
        "text": pa.table({"text": ["a"]}),
        "two": pa.table({"a": pa.array([b"x"]), "b": pa.array([b"y"])}),
    }.items():
        with pytest.raises(SourceError, match="no column holds images"):
            open_source(as_parquet(table, tmp_path / f"{name}.parquet"))


def test_a_table_of_paths_alone_is_told(tmp_path: Path) -> None:
    rows = [{"bytes": None, "path": "/elsewhere/1.jpg"}]
    source = open_source(
        as_parquet(pa.table({"image": pa.array(rows, _IMAGE)}), tmp_path / "p.parquet")
    )
    assert "no bytes of an image" in read(source)[1][0]


def test_labels_beyond_the_names_are_refused(tmp_path: Path) -> None:
    table = pa.table({"image": pa.array([{"bytes": b"x", "path": "x"}], _IMAGE), "label": [3]})
    table = table.replace_schema_metadata(
        described({"label": {"_type": "ClassLabel", "names": ["a", "b"]}})
    )
    with pytest.raises(SourceError, match=r"t\.parquet, row group 0, row 0: the label 3"):
        open_source(as_parquet(table, tmp_path / "t.parquet"))


def test_numbers_stay_numbers_where_names_look_like_them(tmp_path: Path) -> None:
    rows = [{"bytes": b"x", "path": f"{n}"} for n in range(3)]
    table = pa.table({"image": pa.array(rows, _IMAGE), "label": [2, 0, 1]})
    names = ["0", "1", "10", "2"]
    table = table.replace_schema_metadata(
        described({"label": {"_type": "ClassLabel", "names": names}})
    )
    source = open_source(as_parquet(table, tmp_path / "t.parquet"))
    assert source.classes == tuple(names)
    assert [source[n].label for n in range(3)] == [2, 0, 1]


def test_examples_come_with_classes_and_fields(tmp_path: Path) -> None:
    names = {1: b"ant", 3: b"bee"}
    examples: list[dict[str, object]] = [
        {
            "image/encoded": jpeg(n),
            "image/filename": f"{n}.JPEG".encode(),
            "image/class/label": 1 + n % 2 * 2,
            "image/class/text": names[1 + n % 2 * 2],
            "image/height": 24,
            "boxes": [0.5, 1.5],
            "n": n,
            "blob": b"\xff\xfe",
        }
        for n in range(4)
    ]
    source = open_source(records(tmp_path / "train-00000-of-00001", examples))
    assert source.kind == "tfrecord"
    assert source.classes == ("0", "ant", "2", "bee")
    samples, errors = read(source)
    assert errors == []
    assert samples[3] == Sample("3", jpeg(3), 3, {"boxes": [0.5, 1.5], "n": 3}, "3.JPEG")
    assert [n.reason for n in source.report.notes] == [
        "4 features 'blob' that are no text, left out"
    ]
    assert open_source(tmp_path).fingerprint == source.fingerprint


def test_an_image_is_found_by_what_it_is(tmp_path: Path) -> None:
    file = records(
        tmp_path / "x.tfrecords",
        [
            {"picture": jpeg(0), "about": b"a cat", "label": b"cat"},
            {"picture": b"none", "about": b"a dog", "label": b"dog"},
            {"picture": jpeg(1), "other": jpeg(2), "label": b"cat"},
        ],
    )
    samples, errors = read(source := open_source(file))
    assert [(s.label, s.extra["about"]) for s in samples] == [(0, "a cat")]
    assert source.classes == ("cat",)
    assert "none of its features is an image (they are about, label, picture)" in errors[0]
    assert "several of its features are images: other, picture" in errors[1]


@pytest.mark.parametrize("format", _OURS)
def test_what_we_write_is_a_source_without_its_manifest(
    tmp_path: Path, format: str, run: Run
) -> None:
    for name in FORMATS[format].needs:
        pytest.importorskip(name)
    samples = [
        Sample(f"k/{n}", jpeg(n), n % 2, {"n": n, "s": f"é {n}", "b": n > 1}, f"k/{n}.jpg")
        for n in range(7)
    ]
    fields = {"n": "int", "s": "string", "b": "bool"}
    source = MemorySource(samples, ("ant", "bee"), fields)
    convert(source, tmp_path / "o", format=format, options=ConvertOptions(shard_samples=3))
    for name in ("manifest.json", "index.arrow"):
        (tmp_path / "o" / name).unlink()
    again = open_source(tmp_path / "o")
    assert again.kind == format
    assert again.classes == ("ant", "bee")
    if format == "tfrecord":  # which has no type of its own for them
        samples = [s._replace(extra={**s.extra, "b": int(bool(s.extra["b"]))}) for s in samples]
    assert read(again) == (samples, [])
    told = run("convert", tmp_path / "o", tmp_path / "p", "--format", "webdataset", "-q")
    assert told.status == 0, told.err
    assert run("verify", tmp_path / "p", "--against", tmp_path / "o", "-q").status == 0


def test_a_file_that_changes_is_told(tmp_path: Path) -> None:
    rows = [{"bytes": jpeg(1), "path": "1.jpg"}]
    file = as_parquet(pa.table({"image": pa.array(rows, _IMAGE)}), tmp_path / "x.parquet")
    source = open_source(file)
    os.truncate(file, 100)
    assert "the file has changed" in read(source)[1][0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    rows = [{"bytes": b"\xff\xd8\xff" + bytes(50), "path": f"{n}.jpg"} for n in range(4)]
    table = pa.table({"image": pa.array(rows, _IMAGE), "label": list("abab"), "n": [1, 2, 3, 4]})
    return {
        name: write(table, folder / f"{name}.{suffix}").read_bytes()
        for name, (suffix, write) in WRITERS.items()
    }


@pytest.mark.parametrize("name", WRITERS)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_damage_does_more_than_be_refused(
    tmp_path: Path, whole: dict[str, bytes], name: str, data: st.DataObject
) -> None:
    damaged = bytearray(whole[name])
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(damaged)) | st.just(len(damaged)))
    file = tmp_path / f"x.{WRITERS[name][0]}"
    file.write_bytes(damaged[:end])
    with suppress(PackError):
        samples, _ = read(open_source(file))
        assert all(isinstance(sample.image, bytes) for sample in samples)


def test_rows_keep_their_order_in_any_number_of_threads(tmp_path: Path) -> None:
    rows = [{"bytes": jpeg(n), "path": f"{n}.jpg"} for n in range(50)]
    file = as_parquet(pa.table({"image": pa.array(rows, _IMAGE)}), tmp_path / "x.parquet")
    made = []
    for workers in (1, 6):
        target = tmp_path / str(workers)
        options = ConvertOptions(image=Keep(), workers=workers)
        convert(open_source(file), target, format="webdataset", options=options)
        made.append((target / "shard-000000.tar").read_bytes())
    assert made[0] == made[1]
