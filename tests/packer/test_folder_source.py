from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packer.sources.findings import Findings
from packer.sources.folder import FolderSource, classes_of, splits_of
from packer.sources.keys import distinct_keys, image_suffix_size, is_text, key_group, key_of
from packer.sources.opening import open_source
from packer.sources.walk import walk
from readers.errors import (
    DatasetNotFoundError,
    NotAnImageError,
    OptionError,
    PackError,
    SampleError,
    SourceError,
    StorageError,
)
from readers.sample import Sample

_JPEG = b"\xff\xd8\xff\xe0"


def _tree(root: Path, *names: str | bytes) -> Path:
    for name in names:
        file = root / os.fsdecode(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_JPEG + os.fsencode(name))
    return root


def _keys(source: FolderSource) -> list[str]:
    return [source[index].key for index in range(len(source))]


def _notes(source: FolderSource) -> dict[str, str]:
    return {note.path: note.reason for note in source.report.notes}


def test_classes_are_the_first_level_in_plain_sort_and_files_come_before_sub_folders(
    tmp_path: Path,
) -> None:
    _tree(tmp_path, "b/z/1.jpg", "b/a.jpg", "b/y.jpg", "B/1.jpg", "10/1.jpg", "2/1.jpg", "_x/1.jpg")
    source = FolderSource(tmp_path)
    assert source.classes == ("10", "2", "B", "_x", "b")
    assert _keys(source) == ["10/1", "2/1", "B/1", "_x/1", "b/a", "b/y", "b/z/1"]
    sample = source[-1]
    assert sample == Sample("b/z/1", _JPEG + b"b/z/1.jpg", 4, {}, "b/z/1.jpg")
    assert source.path(6) == "b/z/1.jpg"
    for index in (7, -8):
        with pytest.raises(IndexError):
            source[index]


def test_a_flat_folder_has_no_labels(tmp_path: Path) -> None:
    source = FolderSource(_tree(tmp_path, "1.jpg", "2.png", ".git/config", "empty/notes.txt"))
    assert source.classes == FolderSource(tmp_path, classes=("a",)).classes == ()
    assert [source[i].label for i in range(2)] == [None, None]
    assert len(source) == 2
    assert set(_notes(source)) == {".git", "empty"}


def test_files_beside_class_folders_are_named(tmp_path: Path) -> None:
    source = FolderSource(_tree(tmp_path, "a/1.jpg", "2.jpg", "README.md"))
    assert _keys(source) == ["a/1"]
    assert set(_notes(source)) == {"2.jpg", "README.md"}


def test_an_empty_class_keeps_its_number(tmp_path: Path) -> None:
    _tree(tmp_path, "a/1.jpg", "c/1.jpg")
    (tmp_path / "b").mkdir()
    source = FolderSource(tmp_path)
    assert source.classes == ("a", "b", "c")
    assert [source[i].label for i in range(2)] == [0, 2]


def test_pinned_classes_number_the_folders(tmp_path: Path) -> None:
    _tree(tmp_path, "a/1.jpg", "c/1.jpg", "__x/1.jpg")
    source = FolderSource(tmp_path, classes=("c", "b", "a", "__x"))
    assert source.classes == ("c", "b", "a", "__x")
    assert [(source[i].key, source[i].label) for i in range(3)] == [
        ("__x/1", 3),
        ("a/1", 2),
        ("c/1", 0),
    ]
    with pytest.raises(SourceError, match=r"'c'.*name it among the classes"):
        FolderSource(tmp_path, classes=("a", "b"))


def test_litter_is_counted_and_hidden_things_are_named(tmp_path: Path) -> None:
    litter = [
        "._1.jpg",
        ".DS_Store",
        "Thumbs.db",
        "desktop.ini",
        ".nfs00a1",
        "1.jpg~",
        "1.jpg.part",
    ]
    litter += [".1.jpg.swp", "x.TMP", "Icon\r", "ehthumbs.db", ".~lock.a.csv#"]
    _tree(tmp_path, "a/1.jpg", *(f"a/{name}" for name in litter))
    _tree(tmp_path, "a/.hidden.jpg", "a/.cache/1.jpg", "@eaDir/a/1.jpg", "__MACOSX/a/._1.jpg")
    source = FolderSource(tmp_path)
    assert _keys(source) == ["a/1"]
    assert source.report.litter == len(litter)
    assert set(_notes(source)) == {"a/.hidden.jpg", "a/.cache", "@eaDir", "__MACOSX"}


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (["1.jpg", "2.JPEG", "3"], ["1", "2", "3"]),
        (["1.JPEG", "1.jpg", "1.txt"], ["1.JPEG", "1.jpg", "1.txt"]),
        (["x", "x.jpg", "x.jpg.jpg"], ["x", "x.jpg", "x.jpg.jpg"]),
        (["x.jpg", "x.jpg.jpg", "x.jpg.png"], ["x", "x.jpg.jpg", "x.jpg.png"]),
        (["IMG.jpg", "img.jpg"], ["IMG", "img"]),
        (["a.b.c.jpg", "trailing..jpg"], ["a.b.c", "trailing."]),
        ([b"\xff.jpg", b"\xfe%.jpg"], ["%FF", "%FE%25"]),
        ([b"\xff.jpg", b"%FF.jpg", b"%25FF.png"], ["%25FF.jpg", "%FF", "%25FF.png"]),
    ],
)
def test_keys_lose_the_suffix_unless_two_would_be_the_same(
    names: list[str | bytes], keys: list[str]
) -> None:
    raw = [os.fsencode(name) for name in names]
    assert list(map(key_of, raw, *distinct_keys(raw))) == keys


def test_names_that_are_no_utf8_keep_their_path_and_get_a_valid_key(tmp_path: Path) -> None:
    source = FolderSource(_tree(tmp_path, b"caf\xe9/1\xff.jpg", "caf%E9/1.jpg"))
    samples = [source[i] for i in range(2)]
    assert [sample.path for sample in samples] == ["caf%E9/1.jpg", "caf\udce9/1\udcff.jpg"]
    assert [sample.key for sample in samples] == ["caf%E9/1", "caf%25E9/1%FF"]
    assert source.classes == ("caf%E9", "caf%25E9")
    assert [sample.label for sample in samples] == [0, 1]


def test_the_listing_is_the_same_in_every_locale(tmp_path: Path) -> None:
    _tree(tmp_path, "猫/é.jpg", "a/2.jpg", b"\xff/1.jpg", "Z/1.jpg")
    code = (
        "import sys, pathlib; from packer.sources.folder import FolderSource;"
        "s = FolderSource(pathlib.Path(sys.argv[1])); print(ascii([s[i] for i in range(len(s))]),"
        "s.fingerprint, ascii(s.classes))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code, tmp_path],
            env={**os.environ, **env, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for env in (
            {"LC_ALL": "C"},
            {"LC_ALL": "C.UTF-8"},
            {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        )
    }
    assert len(runs) == 1


def test_links_are_followed_once_and_loops_pipes_and_dead_links_are_named(tmp_path: Path) -> None:
    root = _tree(tmp_path / "tree", "a/0.jpg")
    _tree(tmp_path, "elsewhere/1.jpg", "elsewhere/in/2.jpg")
    links = {
        "b": "../elsewhere",
        "a/up": "..",
        "a/self": "self",
        "a/gone.jpg": "nowhere.jpg",
        "a/same.jpg": "0.jpg",
        "a/again": "../../elsewhere",
        "../elsewhere/back": "../tree",
        "loop1": "loop2",
        "loop2": "loop1",
        "c": "../..",
    }
    for link, target in links.items():
        (root / link).symlink_to(target)
    os.mkfifo(root / "a/pipe.jpg")
    source = FolderSource(root)
    assert _keys(source) == ["a/0", "a/same", "b/1", "b/in/2"]
    assert source.classes == ("a", "b")
    assert set(_notes(source)) == {
        *("b", "a/up", "a/self", "a/gone.jpg", "a/again", "a/pipe.jpg", "b/back"),
        *("loop1", "loop2", "c"),
    }


def test_what_is_no_image_is_an_error_that_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "1.jpg").write_bytes(b"<html>404</html>")
    (folder / "2.jpg").write_bytes(b"")
    (folder / "3.txt").write_bytes(b"text")
    (folder / "4").write_bytes(b"")
    (folder / "5.jpg").write_bytes(b"x" * (2 << 20))
    with (folder / "6.jpg").open("wb") as file:
        file.write(_JPEG)
        file.truncate((1 << 30) + 1)
    source = FolderSource(tmp_path)
    said = []
    for index in (2, 3, 5):
        with pytest.raises(SampleError) as caught:
            source[index]
        said.append((type(caught.value), caught.value.message))
        assert caught.value.path == source.path(index)
    assert said == [
        (NotAnImageError, "a/3.txt: no image: starts with b'text'"),
        (NotAnImageError, "a/4: empty file"),
        (SampleError, f"a/6.jpg: {(1 << 30) + 1} bytes, more than the {1 << 30} of an image"),
    ]
    given = [bytes(source[index].image)[:16] for index in (0, 1, 4)]
    assert given == [b"<html>404</html>", b"", b"x" * 16]


def test_files_that_change_after_the_walk_are_named_and_never_block(tmp_path: Path) -> None:
    root = _tree(tmp_path, "a/1.jpg", "a/2.jpg", "a/3.jpg")
    source = FolderSource(root)
    (root / "a/1.jpg").unlink()
    (root / "a/2.jpg").unlink()
    os.mkfifo(root / "a/2.jpg")
    (root / "a/3.jpg").unlink()
    (root / "a/3.jpg").mkdir()
    for index, reason in enumerate(("No such file", "no regular file", "no regular file")):
        with pytest.raises(SampleError, match=f"a/{index + 1}.jpg: {reason}"):
            source[index]


def test_a_folder_that_cannot_be_listed_stops_the_walk(tmp_path: Path) -> None:
    _tree(tmp_path, "a/1.jpg", "b/1.jpg")
    folders = walk(os.fsencode(tmp_path) + b"/", Findings())
    with pytest.raises(SourceError, match="No such file"):
        FolderSource(tmp_path / "gone/too")
    assert [next(folders).key, next(folders).key] == ["", "a/"]
    shutil.rmtree(tmp_path / "b")
    with pytest.raises(SourceError, match=r"/b/' can't be listed: No such file"):
        next(folders)


def test_running_out_of_handles_is_no_fault_of_the_sample(tmp_path: Path) -> None:
    source = FolderSource(_tree(tmp_path, "a/1.jpg"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(StorageError, match="Too many open files"):
            source[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


_NAMES = st.lists(
    st.text(st.sampled_from("aA.%25FE\udcff\udcfe"), min_size=1, max_size=4).flatmap(
        lambda stem: st.sampled_from([stem, stem + ".jpg", stem + ".JPG", stem + ".jpg.png"])
    ),
    unique=True,
    max_size=30,
)


@given(_NAMES)
def test_keys_are_unique_valid_and_shared_within_a_group_only(names: list[str]) -> None:
    raw = [name.encode("utf-8", "surrogateescape") for name in names]
    keys = list(map(key_of, raw, *distinct_keys(raw)))
    assert len(set(keys)) == len(keys)
    for key in keys:
        key.encode()
    alone = [key_of(name, cut, times) for name in raw for cut, times in _possible(name)]
    groups = [key_group(name) for name in raw for _ in _possible(name)]
    assert len(set(zip(alone, groups, strict=True))) == len(set(alone))


def _possible(name: bytes) -> list[tuple[int, int]]:
    escapes = (0,) if is_text(name) else (1, 2, 3)
    return [(cut, times) for cut in {0, image_suffix_size(name)} for times in escapes]


def test_many_threads_read_the_same(tmp_path: Path) -> None:
    source = FolderSource(_tree(tmp_path, *(f"{c}/{i}.jpg" for c in "ab" for i in range(50))))
    with ThreadPoolExecutor(8) as pool:
        samples = list(pool.map(source.__getitem__, list(range(100)) * 5))
    assert samples == [source[i] for i in range(100)] * 5


def test_the_fingerprint_follows_names_and_classes_alone(tmp_path: Path) -> None:
    first = FolderSource(_tree(tmp_path / "1", "a/1.jpg", "b/2.jpg")).fingerprint
    shutil.copytree(tmp_path / "1", tmp_path / "2")
    (tmp_path / "2/a/1.jpg").write_bytes(_JPEG)
    assert FolderSource(tmp_path / "2").fingerprint == first
    assert FolderSource(tmp_path / "2", classes=("b", "a")).fingerprint != first
    (tmp_path / "2/b/2.jpg").rename(tmp_path / "2/b/2.jpeg")
    assert FolderSource(tmp_path / "2").fingerprint != first


def test_a_deep_tree_and_a_long_path_are_walked(tmp_path: Path) -> None:
    deep = "/".join("d" * 90 for _ in range(8))
    source = FolderSource(_tree(tmp_path, f"a/{deep}/leaf.jpg", "b/" + "c/" * 400 + "1.jpg"))
    assert _keys(source) == [f"a/{deep}/leaf", "b/" + "c/" * 400 + "1"]


def test_many_odd_files_are_summed_up(tmp_path: Path) -> None:
    source = FolderSource(_tree(tmp_path, "a/1.jpg", *(f"a/.{i}.jpg" for i in range(150))))
    assert len(source.report.notes) == 101
    assert source.report.notes[-1].reason == "starts with a dot, left out (50 more)"


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["val/a/1.jpg", "train/a/1.jpg", "test/1.jpg", "README"], ("train", "val", "test")),
        (["Train/a/1.jpg", "valid/a/1.jpg", ".git/x"], ("Train", "valid")),
        (["train/a/1.jpg", "bus/1.jpg", "test/1.jpg"], ()),
        (["train/1.jpg"], ()),
        (["val/1.jpg", "test/1.jpg"], ()),
    ],
)
def test_splits_are_found_by_name(
    tmp_path: Path, names: list[str], splits: tuple[str, ...]
) -> None:
    assert splits_of(_tree(tmp_path, *names)) == splits


def test_classes_of_lists_one_level(tmp_path: Path) -> None:
    assert classes_of(_tree(tmp_path, "b/x/1.jpg", "a/1.jpg", "__pycache__/1", "f")) == ("a", "b")


def test_opening_tells_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "none/empty class").mkdir(parents=True)
    (tmp_path / "nothing").mkdir()
    (tmp_path / "x.tar.gz").write_bytes(b"\x1f\x8b\x08")
    (tmp_path / "x.bin").write_bytes(b"data")
    os.mkfifo(tmp_path / "pipe")
    expected: dict[str, tuple[type[PackError], str]] = {
        "gone": (DatasetNotFoundError, "no such file or folder"),
        "none": (SourceError, "holds no files, only folders without any .'empty class'"),
        "nothing": (SourceError, "holds no files"),
        "x.tar.gz": (SourceError, "compressed with gzip"),
        "x.bin": (SourceError, "not a folder, a tar, Parquet, Arrow or TFRecord file, or a list"),
        "pipe": (SourceError, "neither a file nor a folder"),
    }
    for name, (kind, message) in expected.items():
        with pytest.raises(kind, match=message):
            open_source(tmp_path / name)
    with pytest.raises(OptionError, match="for lists"):
        open_source(_tree(tmp_path / "tree", "a/1.jpg"), path_column="file")
    with pytest.raises(OptionError, match="named twice"):
        open_source(tmp_path / "tree", classes=("a", "a"))
    assert open_source(tmp_path / "tree").kind == "folder"
