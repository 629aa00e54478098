"""The same source and options give the same bytes, whoever runs it, where, how and when."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from packer.convert import convert
from packer.options import ConvertOptions
from packer.sources.opening import open_source
from readers.opening import open_dataset
from tests.conftest import COMMAND
from tests.trees import Packing, contents, image_bytes, odd_files, plain_files, write_tree

Files = dict[str, bytes]


def pack(
    source: Path,
    destination: Path,
    format: Packing,
    options: ConvertOptions = ConvertOptions(),  # noqa: B008 - immutable
) -> Files:
    chosen = replace(options, image=format.policy)
    convert(open_source(source), destination, format=format.name, options=chosen)
    return contents(destination)


@pytest.mark.parametrize(
    "limits",
    [ConvertOptions(), ConvertOptions(shard_samples=7), ConvertOptions(shard_size=90_000)],
    ids=["one", "samples", "size"],
)
def test_workers_make_no_difference(
    tmp_path: Path, tree: Path, format: Packing, limits: ConvertOptions
) -> None:
    one, four, eight = (
        pack(tree, tmp_path / str(workers), format, replace(limits, workers=workers))
        for workers in (1, 4, 8)
    )
    assert one == four == eight


def test_time_and_file_times_make_no_difference(
    tmp_path: Path, format: Packing, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_tree(tmp_path / "t", plain_files(9))
    first = pack(source, tmp_path / "first", format)
    for file in source.rglob("*"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    copied = Path(shutil.copytree(source, tmp_path / "elsewhere" / "copy"))
    now = time.time()
    time.sleep(1.1 - now % 1)  # libraries note whole seconds
    assert pack(copied, tmp_path / "second", format) == first
    monkeypatch.chdir(copied.parent)
    assert pack(Path("copy"), Path("third"), format) == first


def test_user_umask_and_locale_make_no_difference(tmp_path: Path, format: Packing) -> None:
    source = write_tree(tmp_path / "t", odd_files())
    first = pack(source, tmp_path / "first", format, ConvertOptions(shard_samples=9))
    places = {
        "ascii": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "USER": "nobody"},
        "other": {"LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"},
    }
    for name, environment in places.items():
        arguments = [
            *COMMAND,
            "convert",
            "t",
            name,
            *format.arguments,
            "--shard-samples",
            "9",
            "-q",
        ]
        done = subprocess.run(
            arguments,
            env={"PATH": os.environ["PATH"], **environment},
            cwd=tmp_path,
            umask=0o077 if name == "ascii" else 0o002,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), name
        assert contents(tmp_path / name) == first, name


def test_directory_order_makes_no_difference(tmp_path: Path, format: Packing) -> None:
    files = plain_files(30)
    one = write_tree(tmp_path / "one", files)
    other = write_tree(tmp_path / "other", dict(reversed(files.items())))
    assert pack(one, tmp_path / "a", format) == pack(other, tmp_path / "b", format)


def test_nothing_of_the_place_is_in_it(tmp_path: Path, tree: Path, format: Packing) -> None:
    made = pack(tree, tmp_path / "very-telling-name", format)
    for name, data in made.items():
        for telling in (b"very-telling-name", os.fsencode(tree.parent), os.fsencode(tree.name)):
            assert telling not in data, name


def test_a_seed_decides_the_order(tmp_path: Path, format: Packing) -> None:
    source = write_tree(tmp_path / "t", plain_files(40))
    plain = pack(source, tmp_path / "plain", format)
    one = pack(source, tmp_path / "one", format, ConvertOptions(shuffle=1))
    assert pack(source, tmp_path / "again", format, ConvertOptions(shuffle=1, workers=7)) == one
    two = pack(source, tmp_path / "two", format, ConvertOptions(shuffle=2))
    zero = pack(source, tmp_path / "zero", format, ConvertOptions(shuffle=0))
    assert (
        len({json.dumps(sorted(map(repr, made.items()))) for made in (plain, one, two, zero)}) == 4
    )
    with open_dataset(tmp_path / "plain") as first, open_dataset(tmp_path / "one") as second:
        assert [sample.key for sample in first] != [sample.key for sample in second]
        assert {s.key: (image_bytes(s), s.label) for s in first} == {
            s.key: (image_bytes(s), s.label) for s in second
        }


def test_the_order_of_a_seed_never_changes(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "t", plain_files(10, classes="a"))
    convert(
        open_source(source),
        tmp_path / "o",
        format="webdataset",
        options=ConvertOptions(shuffle=2026),
    )
    with open_dataset(tmp_path / "o") as dataset:
        order = [int(sample.key[2:]) for sample in dataset]
    assert order == [6, 0, 9, 2, 7, 1, 3, 8, 4, 5]
