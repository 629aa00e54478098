from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packer.sources.findings import Findings
from packer.sources.opening import open_source
from packer.sources.tar import TarSource
from packer.sources.tar_samples import TarShard
from readers.errors import SampleError, SourceError
from readers.sample import JsonValue, Sample

_JPEG = b"\xff\xd8\xff\xe0"


def _write(file: Path, members: Iterable[tuple[str, bytes | str]]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(file, "w") as tar:
        for name, content in members:
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file


def _read(source: TarSource) -> tuple[dict[str, int | None], list[str]]:
    found = [_sample_or_error(source, index) for index in range(len(source))]
    labels = {sample.key: sample.label for sample in found if isinstance(sample, Sample)}
    return labels, [error.message for error in found if isinstance(error, SampleError)]


def _sample_or_error(source: TarSource, index: int) -> Sample | SampleError:
    try:
        return source[index]
    except SampleError as error:
        return error


def test_samples_come_with_labels_and_extra_fields(tmp_path: Path) -> None:
    file = _write(
        tmp_path / "x.tar",
        [
            ("a/1.v2.JPG", _JPEG + b"1"),
            ("._2.jpg", "apple double"),
            ("2.json", json.dumps({"label": 2, "w": 1.5, "tags": ["x"]})),
            ("2.txt", "a cat"),
            ("2.png", _JPEG + b"2"),
            ("2.seg.npy", b"array"),
        ],
    )
    with pytest.raises(SampleError, match="'a/1' lacks a label"):
        TarSource(file)[0]
    source = TarSource(file)
    assert source.classes == ("0", "1", "2")
    assert source.fields == {"w": "float", "tags": "json", "txt": "string"}
    extra: dict[str, JsonValue] = {"w": 1.5, "tags": ["x"], "txt": "a cat"}
    assert source[1] == Sample("2", _JPEG + b"2", 2, extra, "2.png")
    assert source[-1] == source[1]
    assert source.report.litter == 1
    assert [note.reason for note in source.report.notes] == ["1 members .seg.npy, left out"]


def test_a_folder_of_shards_is_read_in_order(tmp_path: Path) -> None:
    for shard, key in (("s-1.tar", "b"), ("s-0.tar", "a")):
        _write(tmp_path / shard, [(f"{key}.jpg", _JPEG), (f"{key}.cls", "dog\n")])
    (tmp_path / "s-0.tar.idx").write_text("v1")
    (tmp_path / "s-0.json").write_text("{}")
    source = open_source(tmp_path, classes=("cat", "dog"))
    assert source.kind == "webdataset"
    assert [(source[i].key, source[i].label, source.path(i)) for i in range(2)] == [
        ("a", 1, "s-0.tar/a.jpg"),
        ("b", 1, "s-1.tar/b.jpg"),
    ]


def test_incomplete_samples_are_errors_of_their_own_and_labels_stay(tmp_path: Path) -> None:
    members: list[tuple[str, bytes | str]] = []
    for i in range(5):
        members += [(f"{i}.jpg", _JPEG)] * (i != 3) + [(f"{i}.cls", str(i % 3))] * (i != 1)
    labels, errors = _read(TarSource(_write(tmp_path / "x.tar", members)))
    assert labels == {"0": 0, "2": 2, "4": 1}
    assert errors == [
        "x.tar: the sample '1' lacks a label (no field cls), others have one",
        "x.tar: the sample '3' lacks an image (its fields: cls)",
    ]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("a.jpg", _JPEG), ("a.JPG", _JPEG)], "has the member 'a.JPG' twice"),
        ([("a.jpg", _JPEG), ("a.png", _JPEG)], "has several images"),
        ([("a.jpg", _JPEG), ("a.cls", "1"), ("a.json", '{"label": 2}')], "has several labels"),
        ([("a.jpg", _JPEG), ("a.json", "{")], "has a damaged json field"),
        ([("a.jpg", _JPEG), ("a.json", "[" * 100_000)], "has a damaged json field"),
        ([("a.jpg", _JPEG), ("a.txt", b"\xff")], "has no UTF-8 in 'txt'"),
    ],
)
def test_a_bad_sample_is_named(
    tmp_path: Path, members: list[tuple[str, bytes | str]], message: str
) -> None:
    labels, errors = _read(TarSource(_write(tmp_path / "x.tar", [*members, ("ok.jpg", _JPEG)])))
    assert list(labels) == ["ok"] or "lacks a label" in errors[-1]
    assert message in errors[0]


def test_members_that_are_not_adjacent_and_repeated_keys_are_refused(tmp_path: Path) -> None:
    mixed: list[tuple[str, bytes | str]] = [
        ("0.jpg", _JPEG),
        ("1.jpg", _JPEG),
        ("0.cls", "1"),
        ("1.cls", "1"),
    ]
    with pytest.raises(SourceError, match=r"x\.tar: the sample '0' at offset 2048.*adjacent"):
        TarSource(_write(tmp_path / "x.tar", mixed))
    for name in ("set/a.tar", "set/b.tar"):
        _write(tmp_path / name, [("0.jpg", _JPEG)])
    with pytest.raises(SourceError, match=r"b\.tar: the sample '0' .* is in a\.tar too"):
        TarSource(tmp_path / "set")


@pytest.mark.parametrize("order", [("cls", "jpg"), ("jpg", "cls")])
def test_every_cut_gives_the_whole_samples_and_then_an_error(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    content = {"jpg": _JPEG + b"x" * 600, "cls": b"1"}
    members = [(f"{i}.{suffix}", content[suffix]) for i in range(3) for suffix in order]
    whole = _write(tmp_path / "whole.tar", members).read_bytes()
    each = 512 * (2 + 1 + 2)
    for end in range(2 * each, 3 * each, 128):
        (tmp_path / "cut.tar").write_bytes(whole[:end])
        source = TarSource(tmp_path / "cut.tar")
        labels, errors = _read(source)
        # The last sample may lack nothing but the padding behind it.
        last_is_whole = end % each > each - 512 and len(labels) == 3
        assert list(labels) == ["0", "1", "2"][: 2 + last_is_whole]
        assert all(source[i].image == content["jpg"] for i in range(len(labels)))
        assert len(errors) == (end % each != 0 and not last_is_whole)
        assert all("offset" in error or "lacks" in error for error in errors)


def _shard() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ("1.jpg", "1.json", "2.cls", "2.jpg", "2.txt"):
            info = tarfile.TarInfo(name)
            info.size = 9
            tar.addfile(info, io.BytesIO(b'{"a": 1} '))
    return out.getvalue()[:6144]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 6143), st.sampled_from([b"", b"\0", b"/", b".", b"\xff", b"9"]))
    ),
    st.integers(0, 6144),
)
def test_no_damage_to_a_shard_raises(edits: list[tuple[int, bytes]], end: int) -> None:
    damaged = bytearray(_shard())
    for at, byte in edits:
        damaged[at : at + len(byte)] = byte
    for at in range(0, len(damaged), 512):
        if damaged[at + 257 : at + 262] == b"ustar":
            total = sum(damaged[at : at + 148]) + sum(damaged[at + 156 : at + 512]) + 8 * 32
            damaged[at + 148 : at + 156] = b"%06o\0 " % total
    shard = bytes(damaged[:end])
    findings = Findings()
    samples = TarShard(lambda at, size: shard[at : at + size], end, "x.tar", findings)
    for sample in samples:
        assert sample.error is not None or sample.offset + sample.size <= end
        json.dumps(sample)
    findings.report()


def test_odd_archives_are_noted(tmp_path: Path) -> None:
    whole = _write(tmp_path / "0.tar", [("0.jpg", _JPEG)]).read_bytes()
    (tmp_path / "1.tar").write_bytes(b"")
    _write(tmp_path / "2.tar", [])
    (tmp_path / "3.tar").write_bytes(whole[:1024].replace(b"0.jpg", b"3.jpg"))
    with pytest.raises(SampleError, match="checksum"):
        TarSource(tmp_path)[1]
    _write(tmp_path / "3.tar", [("3.jpg", _JPEG)])
    (tmp_path / "3.tar").write_bytes((tmp_path / "3.tar").read_bytes()[:1024])
    source = TarSource(tmp_path)
    assert len(source) == 2
    assert [(note.path, note.reason) for note in source.report.notes] == [
        ("1.tar", "empty file, no archive"),
        ("3.tar", "lacks the blocks that end an archive"),
    ]


def test_a_shard_that_changes_is_told(tmp_path: Path) -> None:
    file = _write(tmp_path / "x.tar", [("0.jpg", _JPEG)])
    source = TarSource(file)
    file.write_bytes(file.read_bytes()[:600])
    with pytest.raises(SampleError, match="the shard has changed"):
        source[0]


def test_the_fingerprint_follows_the_contents(tmp_path: Path) -> None:
    def made(label: str) -> str:
        file = _write(tmp_path / "x.tar", [("0.jpg", _JPEG), ("0.cls", label)])
        return TarSource(file).fingerprint

    assert made("1") == made("1") != made("2")
