"""The command: every option does what its help says, and every end has its exit status."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from packer.verify import verify
from readers.decode import decode
from readers.header import read_header
from readers.opening import open_dataset
from readers.registry import FORMATS
from tests.conftest import COMMAND, Run
from tests.trees import Packing, contents, image_bytes, jpeg, plain_files, write_tree

_FORMAT = next(name for name, entry in FORMATS.items() if entry.encoded and not entry.needs)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "t", plain_files(9))


def convert(run: Run, source: Path, *more: object, format: str = _FORMAT) -> dict[str, Any]:
    """Packs beside the source; gives what it says of itself in JSON."""
    told = run("convert", source, source.parent / "o", "--format", format, "--json", *more)
    assert told.status == 0, told.err
    found: dict[str, Any] = json.loads(told.out)
    return found


# convert ------------------------------------------------------------------------------------


def test_it_says_what_it_made(run: Run, folder: Path) -> None:
    found = convert(run, folder, "--shard-samples", 4)
    made = contents(folder.parent / "o")
    assert found["dataset"] == str(folder.parent / "o")
    assert (found["format"], found["samples"], found["classes"], found["shards"]) == (
        _FORMAT,
        9,
        3,
        3,
    )
    assert found["bytes"] == sum(map(len, made.values())) - len(made["manifest.json"])
    assert found["types"] == {"jpeg": 9}
    assert found["seconds"] > 0
    told = run("convert", folder, folder.parent / "p", "--format", _FORMAT)
    assert "9 samples in 3 classes" in told.out


@pytest.mark.parametrize("unit", ["7kB", "7000", "7000B", "6.84KiB", "0.007MB"])
def test_shard_size_is_read_in_any_unit(run: Run, tmp_path: Path, unit: str) -> None:
    folder = write_tree(tmp_path / "t", plain_files(9, 4000))
    assert convert(run, folder, "--shard-size", unit)["shards"] == 9


def test_shuffle_changes_the_order(run: Run, folder: Path) -> None:
    convert(run, folder, "--shuffle", 7)
    with open_dataset(folder.parent / "o") as dataset:
        keys = [sample.key for sample in dataset]
    assert keys != sorted(keys)
    assert "seed 7" in run("inspect", folder.parent / "o").out


def test_inspect_tells_the_storage_and_how_orders_mix(run: Run, folder: Path) -> None:
    convert(run, folder)
    place = folder.parent / "o"
    assert "\nstorage " in run("inspect", place).out
    arguments = ("inspect", place, "--order", "--block", 2, "--buffer", 4, "--json")
    facts = json.loads(run(*arguments).out)
    assert facts["access"]["method"] == "pread"
    assert facts["storage"]
    assert facts["because"]
    assert facts["not shuffled"]["displacement"] == 0
    assert facts["block 2, buffer 4"]["parting"] > 0
    assert run("inspect", place, "--order", "--block", 2).status == 2


def test_classes_pin_the_numbers(run: Run, folder: Path) -> None:
    names = folder.parent / "names.txt"
    names.write_text("z\nc\nb\na\n", encoding="utf-8")
    convert(run, folder, "--classes", names)
    with open_dataset(folder.parent / "o") as dataset:
        assert dataset.classes == ("z", "c", "b", "a")
        assert {sample.key[0]: sample.label for sample in dataset} == {"a": 3, "b": 2, "c": 1}
    for text, said in (("a\nb\n", "'c'"), ("", "names no class"), ("a\nb\na\n", "'a' twice")):
        names.write_text(text, encoding="utf-8")
        told = run("convert", folder, folder.parent / "p", "--format", _FORMAT, "--classes", names)
        assert told.status in {1, 2}
        assert said in told.err


def _list(folder: Path) -> Path:
    rows = ["file;x,kind,size"] + [f"{name},{name[0]},{n}" for n, name in enumerate(plain_files(9))]
    listed = folder.parent / "list.csv"
    listed.write_text("\n".join(rows), encoding="utf-8")
    return listed


def test_columns_and_root_of_a_list_are_chosen(run: Run, folder: Path) -> None:
    listed = _list(folder)
    more = ("--root", folder, "--path-column", "file;x", "--label-column", "kind")
    convert(run, listed, *more)
    with open_dataset(folder.parent / "o") as dataset:
        assert dataset.classes == ("a", "b", "c")
        assert [sample.extra for sample in dataset] == [{"size": n} for n in range(9)]
        assert [sample.path for sample in dataset] == list(plain_files(9))
    told = run("verify", folder.parent / "o", "--against", listed, *more)
    assert (told.status, "9 samples compared" in told.out) == (0, True)
    for wrong in (more[2:], more[:2], (*more[:2], "--path-column", "none"), (*more, "--root", "/")):
        told = run("convert", listed, folder.parent / "p", "--format", _FORMAT, *wrong)
        assert told.status in {1, 2}
        assert "Traceback" not in told.err
    told = run("convert", folder, folder.parent / "p", "--format", _FORMAT, "--root", folder)
    assert told.status == 2


@pytest.fixture
def spoilt(folder: Path) -> Path:
    """The folder with a cut file, one that is none, and a stray text."""
    whole = (folder / "a/0000.jpg").read_bytes()
    write_tree(folder, {"a/cut.jpg": whole[:-100], "b/none.jpg": b"<html>", "c/note.txt": b"hi"})
    return folder


def test_on_error_stops_skips_or_keeps(run: Run, spoilt: Path) -> None:
    target = spoilt.parent / "o"
    told = run("convert", spoilt, target, "--format", _FORMAT, "-q")
    assert (told.status, told.out) == (1, "")
    assert "a/cut.jpg" in told.err
    assert not target.exists()
    skipped = convert(run, spoilt, "--on-error", "skip")
    assert (skipped["samples"], skipped["skipped"]) == (9, 2)
    with open_dataset(target) as dataset:
        ledger = {(entry.path, entry.action) for entry in dataset.manifest.ledger}
    assert {("a/cut.jpg", "skipped"), ("b/none.jpg", "skipped")} <= ledger
    assert "c/note.txt" in {path for path, _ in ledger}
    kept = convert(run, spoilt, "--on-error", "keep", "--overwrite")
    assert (kept["samples"], kept["kept"]) == (11, 2)
    with open_dataset(target) as dataset:
        held = {sample.path: image_bytes(sample) for sample in dataset}
    assert held["a/cut.jpg"] == (spoilt / "a/cut.jpg").read_bytes()
    assert held["b/none.jpg"] == b"<html>"


def test_a_full_check_finds_what_the_header_hides(run: Run, folder: Path) -> None:
    data = bytearray(jpeg(3, 0, 64, 64))
    middle = data.index(b"\xff\xda") + 12
    data[middle : middle + 60] = b"\xff\xff\x01" * 20
    write_tree(folder, {"a/rotten.jpg": bytes(data)})
    assert convert(run, folder)["samples"] == 10
    more = ("--image", "keep", "--check", "decode", "--on-error", "skip", "--overwrite")
    found = convert(run, folder, *more)
    assert found.get("skipped", 0) + found.get("noted", 0) == 1


def test_max_pixels_refuses_by_the_header(run: Run, folder: Path) -> None:
    write_tree(folder, {"a/large.jpg": jpeg(1, 0, 100, 100)})
    more = ("--image", "reencode", "--on-error", "skip", "--max-pixels")
    assert convert(run, folder, *more, 9999)["skipped"] == 1
    assert "skipped" not in convert(run, folder, *more, 10_000, "--overwrite")
    assert "skipped" not in convert(run, folder, *more, 0, "--overwrite")


def test_workers_are_counted_from_zero(run: Run, folder: Path) -> None:
    for workers in (0, 1, 16):
        assert convert(run, folder, "--workers", workers, "--overwrite")["samples"] == 9
    assert run("convert", folder, "x", "--format", _FORMAT, "--workers", -1).status == 2


def test_overwrite_replaces_a_dataset_only(run: Run, folder: Path) -> None:
    convert(run, folder)
    told = run("convert", folder, folder.parent / "o", "--format", _FORMAT)
    assert (told.status, "--overwrite" in told.err) == (1, True)
    convert(run, folder, "--overwrite")
    write_tree(folder.parent / "mine", {"precious": b"1"})
    told = run("convert", folder, folder.parent / "mine", "--format", _FORMAT, "--overwrite")
    assert told.status == 2
    assert contents(folder.parent / "mine") == {"precious": b"1"}


def test_a_dry_run_predicts_and_writes_nothing(run: Run, tmp_path: Path, format: Packing) -> None:
    folder = write_tree(tmp_path / "t", plain_files(40, 8000))
    target = tmp_path / "deep/er/o"
    told = run("convert", folder, target, *format.arguments, "--dry-run", "--json")
    assert told.status == 0, told.err
    predicted = json.loads(told.out)
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]
    assert (predicted["samples"], predicted["refused"], predicted["fits"]) == (40, 0, True)
    assert predicted["source_nbytes"] == sum(map(len, plain_files(40, 8000).values()))
    assert predicted["seconds"] > 0
    assert run("convert", folder, target, *format.arguments, "-q").status == 0
    made = sum(map(len, contents(target).values()))
    assert made <= predicted["nbytes"] * 1.05
    assert predicted["nbytes"] <= made * 1.5 + 100_000
    assert predicted["peak_disk"] >= predicted["nbytes"]
    assert (
        "would hold 40 samples"
        in run("convert", folder, target, *format.arguments, "--dry-run", "--overwrite").out
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_dry_run_refuses_what_does_not_fit(run: Run, tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "t", plain_files(40, 20_000))
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no mounts here")
    try:
        told = run("convert", folder, disk / "o", "--format", _FORMAT, "--dry-run")
        assert told.status == 1
        assert "doesn't fit" in told.out
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_splits_become_datasets_of_the_same_classes(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "t"
    write_tree(source / "train", plain_files(6, classes="ac"))
    write_tree(source / "val", plain_files(6, classes="bc"))
    target = tmp_path / "o"
    told = run("convert", source, target, "--format", _FORMAT, "--json", "-q")
    assert told.status == 0, told.err
    assert [made["samples"] for made in json.loads(told.out)] == [6, 6]
    for split in ("train", "val"):
        with open_dataset(target / split) as dataset:
            assert dataset.classes == ("a", "b", "c")
        assert run("verify", target / split, "--against", source / split, "-q").status == 0
    before = contents(target)
    again = run("convert", source, target, "--format", _FORMAT, "-q")
    assert again.status in {0, 1}
    assert contents(target) == before


def test_a_conversion_of_splits_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "t"
    write_tree(source / "train", plain_files(6))
    write_tree(source / "val", plain_files(6) | {"a/bad.jpg": b"bad"})
    arguments = ("convert", source, tmp_path / "o", "--format", _FORMAT, "-q")
    assert run(*arguments).status == 1
    assert sorted(entry.name for entry in (tmp_path / "o").iterdir()) == ["train", "val.partial"]
    before = contents(tmp_path / "o/train")
    (source / "val/a/bad.jpg").write_bytes(jpeg(99))
    assert run(*arguments).status == 0
    assert contents(tmp_path / "o/train") == before
    assert verify(tmp_path / "o/val").samples == 7


def test_splits_are_never_put_into_a_dataset(run: Run, folder: Path) -> None:
    convert(run, folder)
    before = contents(folder.parent / "o")
    for split in ("train", "val"):
        write_tree(folder.parent / "s" / split, plain_files(2))
    told = run("convert", folder.parent / "s", folder.parent / "o", "--format", _FORMAT, "-q")
    assert told.status == 1
    assert contents(folder.parent / "o") == before


# images -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "size"),
    [
        (("--side", 12), (12, 16)),
        (("--side", 12, "--by", "longer"), (9, 12)),
        (("--side", 48), (24, 32)),
        (("--side", 48, "--enlarge"), (48, 64)),
    ],
    ids=str,
)
def test_resize_gives_the_side_asked(
    run: Run, folder: Path, more: tuple[object, ...], size: tuple[int, int]
) -> None:
    convert(run, folder, "--image", "resize", *more)
    with open_dataset(folder.parent / "o") as dataset:
        assert {decode(image_bytes(sample)).shape for sample in dataset} == {(*size, 3)}


def test_quality_and_subsampling_reach_the_encoder(run: Run, folder: Path) -> None:
    sizes = {}
    for quality in (10, 95):
        convert(run, folder, "--image", "reencode", "--quality", quality, "--overwrite")
        with open_dataset(folder.parent / "o") as dataset:
            sizes[quality] = sum(len(image_bytes(sample)) for sample in dataset)
    assert sizes[10] < sizes[95]
    for subsampling, components in (("444", 3), ("gray", 1)):
        more = ("--subsampling", subsampling, "--overwrite")
        convert(run, folder, "--image", "reencode", *more)
        with open_dataset(folder.parent / "o") as dataset:
            header = read_header(image_bytes(dataset[0]))
        assert header.components == components


@pytest.mark.parametrize(
    "more",
    [
        ("--image", "resize"),
        ("--side", 5),
        ("--image", "keep", "--quality", 3),
        ("--image", "reencode", "--fit", "pad"),
        ("--image", "decode"),
        ("--image", "blur"),
        ("--image", "reencode", "--quality", 0),
        ("--image", "reencode", "--quality", 101),
        ("--shard-size", "much"),
        ("--shard-samples", 0),
        ("--shuffle", -1),
        ("--shuffle", 1 << 64),
        ("--on-error", "cry"),
        ("--classes", "/nowhere"),
        ("--root", "/nowhere"),
        ("--no-such-option",),
        ("--format", "lmbd"),
        ("third argument",),
    ],
    ids=str,
)
def test_wrong_usage_ends_with_2_and_writes_nothing(
    run: Run, folder: Path, more: tuple[object, ...]
) -> None:
    told = run("convert", folder, folder.parent / "o", "--format", _FORMAT, *more)
    assert (told.status, told.out) == (2, "")
    assert told.err.strip()
    assert "Traceback" not in told.err
    assert [entry.name for entry in folder.parent.iterdir()] == ["t"]


def test_a_wrong_format_is_corrected(run: Run, folder: Path) -> None:
    told = run("convert", folder, "o", "--format", "lmbd")
    assert "did you mean 'lmdb'" in told.err
    assert run("formats", "lmbd").status == 2


@pytest.mark.parametrize(
    ("source", "said"),
    [("nowhere", "no such"), ("empty", "no files"), ("text.txt", "not a folder"), ("t.zip", "zip")],
)
def test_a_source_that_will_not_do_is_said_in_a_line(
    run: Run, tmp_path: Path, source: str, said: str
) -> None:
    (tmp_path / "empty").mkdir()
    write_tree(tmp_path, {"text.txt": b"text", "t.zip": b"PK\x03\x04"})
    told = run("convert", tmp_path / source, tmp_path / "o", "--format", _FORMAT, "-q")
    assert (told.status, told.out, len(told.err.splitlines())) == (1, "", 1)
    assert said in told.err
    assert not (tmp_path / "o").exists()
    assert not (tmp_path / "o.partial").exists()


# what is shown ------------------------------------------------------------------------------


def test_quiet_is_silent(run: Run, folder: Path) -> None:
    told = run("convert", folder, folder.parent / "o", "--format", _FORMAT, "--quiet")
    assert (told.status, told.err) == (0, "")
    assert len(told.out.splitlines()) == 1
    told = run("verify", folder.parent / "o", "--against", folder, "--quiet")
    assert (told.status, told.err) == (0, "")


def test_progress_begins_within_two_seconds_without_a_terminal(folder: Path) -> None:
    arguments = [*COMMAND, "convert", str(folder), str(folder.parent / "o"), "--format", _FORMAT]
    began = time.monotonic()
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        seconds = time.monotonic() - began
        out, rest = process.communicate()
    assert seconds < 2
    assert first.startswith("look through")
    assert "pack 0 of 9" in rest
    assert "\r" not in rest
    assert "samples" in out


def test_a_terminal_gets_a_bar(folder: Path) -> None:
    arguments = [*COMMAND, "convert", str(folder), str(folder.parent / "o"), "--format", _FORMAT]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm"}
    with subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert process.returncode == 0
    assert re.search(rb"\[#+\.*\] +\d+% pack \d+ of 9", shown)
    assert shown.rstrip().endswith(b"\x1b[2K")


def test_results_go_to_stdout_and_all_else_to_stderr(run: Run, folder: Path) -> None:
    told = run("convert", folder, folder.parent / "o", "--format", _FORMAT)
    assert told.out.startswith(str(folder.parent / "o"))
    assert "pack" in told.err
    assert "pack" not in told.out.replace("packer", "")


# verify, inspect, formats -------------------------------------------------------------------


def test_verify_tells_whole_from_damaged(run: Run, folder: Path) -> None:
    convert(run, folder)
    target = folder.parent / "o"
    told = run("verify", target)
    assert told.status == 0
    assert "whole: 9 samples" in told.out
    found = json.loads(run("verify", target, "--json", "--workers", 3).out)
    assert (found["whole"], found["samples"], found["compared"], found["faults"]) == (
        True,
        9,
        None,
        [],
    )
    write_tree(folder, {"a/more.jpg": jpeg(1)})
    told = run("verify", target, "--against", folder, "--json")
    assert told.status == 1
    found = json.loads(told.out)
    assert found["whole"]
    assert "a/more.jpg" in found["differences"][0]["reason"]


def test_verify_says_what_is_no_dataset(run: Run, tmp_path: Path) -> None:
    for place in (tmp_path / "none", tmp_path):
        told = run("verify", place, "-q")
        assert (told.status, told.out, len(told.err.splitlines())) == (1, "", 1)


def test_inspect_describes_a_dataset(run: Run, spoilt: Path) -> None:
    convert(run, spoilt, "--on-error", "skip", "--shard-samples", 5)
    target = spoilt.parent / "o"
    text = run("inspect", target).out
    assert all(word in text for word in (_FORMAT, "samples", "encoded images", "keep", "a, b, c"))
    facts = json.loads(run("inspect", target, "--json").out)
    assert (facts["samples"], facts["shards"], facts["classes"]) == (9, 2, ["a", "b", "c"])
    assert "ledger" in facts
    ledger = json.loads(run("inspect", target, "--json", "--ledger").out)["ledger"]
    assert {entry["path"] for entry in ledger} == {"a/cut.jpg", "b/none.jpg", "c/note.txt"}
    assert "a/cut.jpg" in run("inspect", target, "--ledger").out


def test_inspect_describes_and_saves_a_sample(run: Run, folder: Path) -> None:
    convert(run, folder)
    target = folder.parent / "o"
    with open_dataset(target) as dataset:
        sample, checksum = dataset[-1], dataset.index.checksums[-1].tobytes().hex()
    facts = json.loads(run("inspect", target, "-1", "--json").out)
    assert (facts["index"], facts["key"], facts["class"]) == (8, sample.key, "c")
    assert (facts["height"], facts["width"], facts["type"]) == (24, 32, "jpeg")
    assert facts["checksum"] == checksum
    assert facts["bytes"] == len(image_bytes(sample))
    saved = folder.parent / "saved.jpg"
    assert run("inspect", target, 8, "--save", saved).status == 0
    assert saved.read_bytes() == image_bytes(sample)
    assert run("inspect", target, "--save", saved).status == 2
    assert run("inspect", target, 9).status == 2
    told = run("inspect", target, 8, "--save", "/nowhere/x.jpg")
    assert (told.status, len(told.err.splitlines())) == (1, 1)


def test_formats_lists_and_specifies(run: Run) -> None:
    listed = run("formats")
    assert [line.split()[0] for line in listed.out.splitlines()] == list(FORMATS)
    assert [entry["name"] for entry in json.loads(run("formats", "--json").out)] == list(FORMATS)
    for name, entry in FORMATS.items():
        told = run("formats", name).out
        assert entry.summary in told
        assert len(told.splitlines()) > 15
        assert json.loads(run("formats", name, "--json").out)["specification"] in told


def test_help_and_version_are_there(run: Run) -> None:
    for arguments in (("--help",), ("-h",), ("convert", "-h"), ("verify", "-h"), ("inspect", "-h")):
        told = run(*arguments)
        assert (told.status, told.err) == (0, "")
        assert told.out.startswith("Usage")
    assert run("--version").out.startswith("packer, version ")
    assert run("no-such-command").status == 2


def test_a_closed_pipe_is_no_traceback(folder: Path, run: Run) -> None:
    convert(run, folder)
    with subprocess.Popen(
        [*COMMAND, "inspect", str(folder.parent / "o")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()
    assert "Traceback" not in said
