from __future__ import annotations

from pathlib import Path

import pytest

from packer.convert import convert
from packer.options import ConvertOptions
from packer.sources.opening import open_source
from readers.errors import SampleError
from tests.trees import contents, jpeg

_OPTIONS = ConvertOptions(shard_samples=4, workers=2)


def _stopped(tmp_path: Path) -> Path:
    """Makes a folder whose conversion stopped in its fourth shard, and mends what stopped it."""
    folder = tmp_path / "photos" / "a"
    folder.mkdir(parents=True)
    for number in range(20):
        (folder / f"{number:02d}.jpg").write_bytes(jpeg(number))
    bad = folder / "14.jpg"
    bad.write_bytes(b"<html>")
    with pytest.raises(SampleError, match=r"14\.jpg"):
        convert(open_source(folder.parent), tmp_path / "o", format="lmdb", options=_OPTIONS)
    bad.write_bytes(jpeg(14))
    return folder.parent


def _resumed_equals_anew(folder: Path, tmp_path: Path) -> bool:
    for name in ("o", "anew"):
        convert(open_source(folder), tmp_path / name, format="lmdb", options=_OPTIONS)
    return contents(tmp_path / "o") == contents(tmp_path / "anew")


def test_finished_shards_are_not_packed_again(tmp_path: Path) -> None:
    folder = _stopped(tmp_path)
    shards = tmp_path / "o.partial" / "dataset"
    before = {path.name: path.stat().st_ino for path in shards.iterdir()}
    assert len(before) == 3
    assert _resumed_equals_anew(folder, tmp_path)
    after = {path.name: path.stat().st_ino for path in (tmp_path / "o").iterdir()}
    assert before.items() <= after.items()


@pytest.mark.parametrize("number", [0, 5, 11])
def test_files_that_changed_since_are_packed_again(tmp_path: Path, number: int) -> None:
    folder = _stopped(tmp_path)
    (folder / "a" / f"{number:02d}.jpg").write_bytes(jpeg(100 + number) + b"more")
    assert _resumed_equals_anew(folder, tmp_path)


@pytest.mark.parametrize("damage", ["lost", "cut"])
def test_a_finished_shard_that_is_not_whole_any_more_is_packed_again(
    tmp_path: Path, damage: str
) -> None:
    folder = _stopped(tmp_path)
    shard = tmp_path / "o.partial" / "dataset" / "shard-000001.mdb"
    if damage == "lost":
        shard.unlink()
    else:
        shard.write_bytes(shard.read_bytes()[:-1])
    assert _resumed_equals_anew(folder, tmp_path)
