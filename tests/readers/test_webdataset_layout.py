from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest
import webdataset
from hypothesis import example, given, settings
from hypothesis import strategies as st

from readers.errors import CorruptDatasetError, FormatError
from readers.layout.webdataset import (
    BLOCK,
    END,
    Member,
    TarScan,
    member_header,
    member_stem,
    padding,
    scan_tar,
)

_ODD_KEYS = [
    "",
    "/",
    "a//b",
    "/a",
    "a/",
    "%",
    "%25",
    "a.b",
    "a%2Eb",
    "../../x",
    ".hidden",
    "__a__/b",
    "___",
    "a/__b",
    "猫/1",
    "new\nline",
    "back\\slash",
    "x" * 5000,
    "k" * 120 + "/" + "m" * 120,
    "\udcff",
    "A",
    "a",
]
_KEYS = st.text(st.sampled_from("aA_./%\\25E é猫\n\x85") | st.characters(), max_size=150)


def _archive(members: Iterable[tuple[str, bytes]]) -> bytes:
    parts = [member_header(name, len(data)) + data + padding(len(data)) for name, data in members]
    return b"".join(parts) + END


def _scan(data: bytes) -> tuple[TarScan, list[Member]]:
    scan = scan_tar(lambda offset, size: data[offset : offset + size], len(data))
    return scan, list(scan)


def _tar(
    members: Iterable[tuple[str, bytes]],
    style: int,
    headers: dict[str, str] | None = None,
) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=style, pax_headers=headers) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


@settings(deadline=None)
@given(st.lists(_KEYS, unique=True, max_size=8))
@example(_ODD_KEYS)
def test_stems_differ_and_split_the_same_by_every_rule(keys: list[str]) -> None:
    stems = [member_stem(key) for key in keys]
    assert len(set(stems)) == len(keys)
    for stem in stems:
        name = f"{stem}.jpg"
        assert name.split(".", 1) == name.rsplit(".", 1) == [stem, "jpg"]
        assert webdataset.tariterators.base_plus_ext(name) == (stem, "jpg")
        assert not re.match(r"__[^/]*__($|/)", name), "webdataset takes it for its own"
        assert not any(part.startswith("__") for part in name.split("/"))
        assert all(stem.split("/")), "no part is empty"
        assert os.path.normpath(name) == name
        name.encode()


def test_ordinary_keys_are_their_own_stems() -> None:
    for key in ("n01440764/n01440764_10026", "my class/ lead", "猫/🐱", "a_/b__c", "Zoo/IMG"):
        assert member_stem(key) == key
    assert member_stem("cat.v1/22.05") == "cat%2Ev1/22%2E05"


@settings(deadline=None)
@given(st.dictionaries(_KEYS, st.binary(max_size=1100), max_size=5))
@example(dict.fromkeys(_ODD_KEYS, b"x"))
def test_tarfile_and_webdataset_read_what_is_written(contents: dict[str, bytes]) -> None:
    members = [(f"{member_stem(key)}.jpg", data) for key, data in contents.items()]
    archive = _archive(members)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for info, (name, data) in zip(tar.getmembers(), members, strict=True):
            stream = tar.extractfile(info)
            assert stream is not None
            assert (info.name, stream.read()) == (name, data)
            assert (info.mode, info.uid, info.gid, info.mtime) == (0o644, 0, 0, 0)
            assert (info.uname, info.gname) == ("", "")
    scan, found = _scan(archive)
    assert scan.ended
    assert [(m.name, archive[m.offset : m.offset + m.size]) for m in found] == members
    assert [m.header for m in found] == sorted(m.header for m in found)
    files = webdataset.tariterators.tar_file_expander([{"stream": io.BytesIO(archive), "url": ""}])
    samples = list(webdataset.tariterators.group_by_keys(files))
    assert [(s["__key__"] + ".jpg", s["jpg"]) for s in samples] == members


def test_gnu_tar_lists_what_we_wrote(tmp_path: Path) -> None:
    names = ["a.jpg", "n" * 99 + ".jpg", "k" * 120 + "/" + "m" * 90 + ".jpg", "猫/猫 001.jpg"]
    file = tmp_path / "x.tar"
    file.write_bytes(_archive((name, b"data") for name in names))
    listed = subprocess.run(
        ["tar", "--quoting-style=literal", "-tf", file], capture_output=True, check=True
    )
    assert listed.stdout.decode().splitlines() == names
    assert listed.stderr == b""


def test_a_long_ascii_name_needs_no_extended_header() -> None:
    assert len(member_header("k" * 120 + "/" + "m" * 96 + ".jpg", 1)) == BLOCK
    assert len(member_header("k" * 120 + "/" + "m" * 97 + ".jpg", 1)) == 3 * BLOCK


def test_a_size_over_8_gib_goes_through() -> None:
    size = 9 << 30
    header = member_header("big.jpg", size)
    assert tarfile.TarFile.open(fileobj=io.BytesIO(header)).next().size == size  # type: ignore[union-attr]
    scan = scan_tar(lambda at, count: header[at : at + count], len(header) + size)
    assert next(iter(scan)).size == size


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_name_that_tar_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        member_header(name, 1)


@pytest.mark.parametrize("style", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_other_tools_are_read(style: int) -> None:
    names = ["./a.jpg", "b//c.jpg", "/abs.jpg"]
    if style != tarfile.USTAR_FORMAT:
        names += ["p" * 130 + "/é.jpg", "q/" * 200 + "x.jpg"]
    headers = {"comment": "global"} if style == tarfile.PAX_FORMAT else None
    archive = _tar([(name, name.encode()) for name in names], style, headers)
    scan, found = _scan(archive)
    assert scan.ended
    wanted = ["a.jpg", "b/c.jpg", "abs.jpg", *names[3:]]
    assert [m.name for m in found] == wanted
    assert [archive[m.offset : m.offset + m.size].decode() for m in found] == names


def test_folders_links_and_devices_are_passed_over() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE):
            info = tarfile.TarInfo("odd" + kind.decode())
            info.type = kind
            tar.addfile(info)
        tar.addfile(tarfile.TarInfo("file"))
    scan, found = _scan(out.getvalue())
    assert [member.name for member in found] == ["file"]
    assert scan.links == 3


def test_base_256_sizes_are_read() -> None:
    block = bytearray(member_header("a", 5))
    block[124:136] = b"\x80" + (5).to_bytes(11, "big")
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + sum(block[156:]) + 8 * 32)
    assert _scan(bytes(block) + b"hello" + padding(5) + END)[1] == [Member("a", 512, 5, 0)]


def test_a_name_that_leaves_its_folder_is_refused() -> None:
    with pytest.raises(FormatError, match="leaves its folder"):
        _scan(_tar([("../../x", b"")], tarfile.PAX_FORMAT))


@pytest.mark.parametrize(
    ("end", "offset"),
    [(100, 0), (BLOCK + 100, BLOCK), (3 * BLOCK + 10, 3 * BLOCK)],
)
def test_a_cut_archive_names_the_offset(end: int, offset: int) -> None:
    archive = _archive([("a.jpg", b"x" * 700), ("b.jpg", b"y")])
    with pytest.raises(CorruptDatasetError, match=f"offset {offset}") as caught:
        _scan(archive[:end])
    assert caught.value.offset == offset


def test_missing_end_blocks_are_told() -> None:
    archive = _archive([("a.jpg", b"x" * 700)])
    scan, found = _scan(archive[: -len(END)])
    assert len(found) == 1
    assert not scan.ended


def test_an_appended_archive_is_an_error_rather_than_lost() -> None:
    archive = _archive([("a.jpg", b"x")])
    with pytest.raises(CorruptDatasetError, match="follow the end"):
        _scan(archive + archive)


def test_a_flipped_bit_in_a_header_is_found() -> None:
    archive = bytearray(_archive([("a.jpg", b"x"), ("b.jpg", b"y")]))
    archive[2 * BLOCK] ^= 1
    with pytest.raises(CorruptDatasetError, match="checksum") as caught:
        _scan(bytes(archive))
    assert caught.value.offset == 2 * BLOCK


def _rechecksummed(archive: bytearray) -> bytes:
    for at in range(0, len(archive), BLOCK):
        block = archive[at : at + BLOCK]
        if len(block) == BLOCK and block[257:262] == b"ustar":
            total = sum(block[:148]) + sum(block[156:]) + 8 * 32
            archive[at + 148 : at + 156] = b"%06o\0 " % total
    return bytes(archive)


_SEED = _tar([("a" * 120 + ".jpg", b"x" * 30), ("é.cls", b"7")], tarfile.PAX_FORMAT)[:6144] + _tar(
    [("b" * 120 + ".jpg", b"y" * 600)], tarfile.GNU_FORMAT
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(_SEED) - 1), st.binary(min_size=1, max_size=12))),
    st.integers(0, len(_SEED)),
)
def test_whatever_the_bytes_only_our_errors_come_out_and_no_length_is_trusted(
    edits: list[tuple[int, bytes]], end: int
) -> None:
    damaged = bytearray(_SEED)
    for at, data in edits:
        damaged[at : at + len(data)] = data
    archive = _rechecksummed(damaged)[:end]
    asked: list[int] = []

    def read(offset: int, size: int) -> bytes:
        asked.append(size)
        return archive[offset : offset + size]

    try:
        for member in scan_tar(read, len(archive)):
            assert member.offset + member.size <= len(archive)
    except FormatError:
        pass
    assert max(asked, default=0) <= 1 << 20
