"""A run may be stopped at any moment, by anything, and nothing is lost, mixed or done twice."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from packer.convert import convert
from packer.options import ConvertOptions
from packer.sources.opening import open_source
from packer.verify import verify
from readers.errors import PackError
from readers.opening import open_dataset
from tests.conftest import COMMAND, Run, one_format
from tests.trees import PACKINGS, PLAIN, Packing, contents, jpeg, plain_files, write_tree

_KILLS = int(os.environ.get("PACKER_KILLS", "6"))
_TIMEOUT = 120
_PROMPTLY = 2.0
"""Seconds within which an interrupted run must have ended."""

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(tmp_path_factory.mktemp("source") / "tree", plain_files(120, 9000))


def command(source: Path, destination: Path, format: Packing, *more: str) -> list[str]:
    arguments = (*format.arguments, "--shard-samples", "5", "--workers", "2", *more)
    return [*COMMAND, "convert", str(source), str(destination), *arguments]


def start(arguments: list[str], *, own_session: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=own_session,
    )


def wait_for_shard(run: subprocess.Popen[str], destination: Path, shards: int = 1) -> None:
    """Waits until a run has finished some shards."""
    journal = destination.with_name(destination.name + ".partial") / "journal"
    while run.poll() is None and len(list(journal.glob("*.json"))) < shards:
        time.sleep(0.002)
    assert run.poll() is None


def finished_shards(destination: Path) -> dict[str, tuple[int, int]]:
    """Gives inode and time of each file of the shards that an unfinished run has finished."""
    partial = destination.with_name(destination.name + ".partial")
    found = {}
    for entry in sorted((partial / "journal").glob("*.json")):
        for file in (partial / "dataset").glob(f"{entry.stem}.*"):
            status = file.stat()
            found[file.name] = (status.st_ino, status.st_mtime_ns)
    return found


def still_there(before: dict[str, tuple[int, int]], destination: Path) -> bool:
    """Tells whether none of the finished shards was written again."""
    partial = destination.with_name(destination.name + ".partial")
    place = partial / "dataset" if (partial / "dataset").exists() else destination
    status = {name: (place / name).stat() for name in before}
    return before == {name: (s.st_ino, s.st_mtime_ns) for name, s in status.items()}


@pytest.fixture(scope="module")
def reference(
    tmp_path_factory: pytest.TempPathFactory, source: Path, format: Packing
) -> tuple[dict[str, bytes], float]:
    """The files of a run that wasn't interrupted, and how long it took."""
    destination = tmp_path_factory.mktemp("reference") / "whole"
    began = time.monotonic()
    subprocess.run(command(source, destination, format), check=True, capture_output=True)
    return contents(destination), time.monotonic() - began


def test_killed_again_and_again_it_ends_with_the_same_bytes(
    tmp_path: Path, source: Path, format: Packing, reference: tuple[dict[str, bytes], float]
) -> None:
    wanted, seconds = reference
    chance = random.Random(str(format))  # noqa: S311 - no secret
    destination = tmp_path / "o"
    kills = 0
    while True:
        before = finished_shards(destination)
        with start(command(source, destination, format)) as run:
            if kills < _KILLS:
                try:
                    run.wait(chance.uniform(0.2, 1) * seconds)
                except subprocess.TimeoutExpired:
                    run.kill()
                    kills += 1
            _, said = run.communicate(timeout=_TIMEOUT)
        assert still_there(before, destination)
        if run.returncode == -signal.SIGKILL:
            assert not destination.exists() or contents(destination) == wanted
            assert {entry.name for entry in tmp_path.iterdir()} <= {"o", "o.partial"}
            continue
        done = len([name for name in before if name.startswith("shard-")])
        if destination.exists() and run.returncode == 1:
            assert "exists" in said  # it was killed after it had given the dataset its name
        else:
            assert run.returncode == 0, said
            assert not done or "going on with an unfinished run" in said
        assert contents(destination) == wanted
        assert [entry.name for entry in tmp_path.iterdir()] == ["o"]
        if kills >= _KILLS:
            return
        shutil.rmtree(destination)


_WATCHED = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "open"}


def convert_until(
    event: int | None, source: Path, destination: Path, format: Packing, *, overwrite: bool
) -> int:
    """Converts in a forked process that is killed before its n-th change of a directory.

    Returns:
        0 if it came to its end.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        count = 0

        def watch(name: str, arguments: tuple[object, ...]) -> None:
            nonlocal count
            if name not in _WATCHED:
                return
            if name == "open" and not (isinstance(arguments[2], int) and arguments[2] & os.O_CREAT):
                return
            count += 1
            if count == event:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        signal.alarm(_TIMEOUT)
        options = ConvertOptions(
            image=format.policy, shard_samples=3, workers=1, overwrite=overwrite
        )
        convert(open_source(source), destination, format=format.name, options=options)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a forked test process must not go on
        traceback.print_exc()
        os._exit(9)


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """A place that takes no time to flush, if there is one."""
    memory = Path("/dev/shm")  # noqa: S108 - a place of its own is made there
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as place:
        yield Path(place)


@pytest.mark.parametrize(
    ("format", "overwrite", "stride"),
    [
        (PLAIN, False, 1),
        (PLAIN, True, 1),
        *((one, n % 2 == 0, 5) for n, one in enumerate(PACKINGS) if one != PLAIN),
    ],
    ids=str,
    indirect=["format"],
    scope="session",
)
def test_killed_before_any_step_it_ends_with_the_same_bytes(
    quick: Path, format: Packing, *, overwrite: bool, stride: int
) -> None:
    source = write_tree(quick / "source", plain_files(5))
    whole, place = quick / "whole", quick / "place"
    assert convert_until(None, source, whole, format, overwrite=False) == 0
    wanted = contents(whole)
    options = ConvertOptions(image=format.policy, shard_samples=2, shuffle=5)
    convert(open_source(source), quick / "old", format=format.name, options=options)
    old = contents(quick / "old")
    destination = place / "o"
    event = 0
    ended = False
    while not ended:
        event += stride
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        if overwrite:
            shutil.copytree(quick / "old", destination)
        status = convert_until(event, source, destination, format, overwrite=overwrite)
        ended = status == 0
        assert status in {0, -signal.SIGKILL}, event
        found = destination if destination.exists() else place / "o.partial" / "replaced"
        assert contents(found) in ([old, wanted] if overwrite else [{}, wanted]), event
        before = finished_shards(destination)
        published = destination.exists() and contents(destination) == wanted
        status = convert_until(None, source, destination, format, overwrite=overwrite)
        assert status == 0 or (published and not overwrite), event
        assert contents(destination) == wanted, event
        assert [entry.name for entry in place.iterdir()] == ["o"], event
        assert published or still_there(before, destination), event
    assert event > 30


@pytest.mark.parametrize(
    ("format", "number", "group", "status"),
    [
        *((packing, signal.SIGINT, True, 130) for packing in PACKINGS),
        (PLAIN, signal.SIGINT, False, 130),
        (PLAIN, signal.SIGTERM, False, 143),
        (PLAIN, signal.SIGTERM, True, 143),
    ],
    ids=str,
    indirect=["format"],
    scope="session",
)
def test_a_signal_ends_it_soon_and_cleanly(
    *,
    tmp_path: Path,
    source: Path,
    format: Packing,
    reference: tuple[dict[str, bytes], float],
    number: signal.Signals,
    group: bool,
    status: int,
) -> None:
    destination = tmp_path / "o"
    with start(command(source, destination, format, "--quiet"), own_session=True) as run:
        wait_for_shard(run, destination, 2)
        began = time.monotonic()
        (os.killpg if group else os.kill)(run.pid, number)
        _, said = run.communicate(timeout=_TIMEOUT)
    assert time.monotonic() - began < _PROMPTLY
    assert run.returncode == status, said
    assert len(said.strip().splitlines()) == 1
    assert said.strip().startswith("packer: ")
    with pytest.raises(ProcessLookupError):
        os.killpg(run.pid, 0)
    assert not destination.exists()
    subprocess.run(command(source, destination, format), check=True, capture_output=True)
    assert contents(destination) == reference[0]
    assert [entry.name for entry in tmp_path.iterdir()] == ["o"]


@one_format
def test_a_second_run_is_refused_and_told_who_is_at_work(
    tmp_path: Path, source: Path, format: Packing, run: Run
) -> None:
    destination = tmp_path / "o"
    with start(command(source, destination, format)) as first:
        wait_for_shard(first, destination)
        first.send_signal(signal.SIGSTOP)
        for more in ((), ("--overwrite",), ("--no-resume",), ("--format", "lmdb")):
            second = run("convert", source, destination, *format.arguments, *more, "-q")
            assert (second.status, second.out) == (1, "")
            assert f"process {first.pid} on {socket.gethostname()}" in second.err
        first.send_signal(signal.SIGCONT)
        _, said = first.communicate(timeout=_TIMEOUT)
    assert first.returncode == 0, said
    assert verify(destination).faults == []


@one_format
def test_of_runs_that_start_together_one_goes_on(
    tmp_path: Path, source: Path, format: Packing
) -> None:
    destination = tmp_path / "o"
    runs = [start(command(source, destination, format, "-q")) for _ in range(4)]
    ends = [(run.communicate(timeout=_TIMEOUT)[1], run.returncode) for run in runs]
    assert sorted(status for _, status in ends) == [0, 1, 1, 1]
    assert all("held by process" in said or "exists" in said for said, status in ends if status)
    assert verify(destination).faults == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["o"]


def _abandoned(source: Path, destination: Path, format: Packing) -> Path:
    """Leaves an unfinished run behind; gives its claim."""
    with start(command(source, destination, format)) as run:
        wait_for_shard(run, destination)
        run.kill()
        run.communicate(timeout=_TIMEOUT)
    return destination.with_name(destination.name + ".partial") / "claim"


@one_format
@pytest.mark.parametrize("change", ["host", "garbage", "empty"])
def test_a_claim_that_can_not_be_judged_stands(
    tmp_path: Path, source: Path, format: Packing, change: str
) -> None:
    claim = _abandoned(source, tmp_path / "o", format)
    holder = json.loads(claim.read_bytes())
    changed = {"host": json.dumps(holder | {"host": "elsewhere"}), "garbage": "{", "empty": ""}
    claim.write_text(changed[change], encoding="utf-8")
    again = command(source, tmp_path / "o", format, "-q")
    for _ in range(2):
        with start(again) as run:
            _, said = run.communicate(timeout=_TIMEOUT)
        assert run.returncode == 1
        assert str(claim) in said
        assert change != "host" or f"process {holder['pid']} on elsewhere" in said
        assert claim.read_text(encoding="utf-8") == changed[change]
    claim.unlink()
    subprocess.run(again, check=True)


@one_format
@pytest.mark.parametrize("change", ["pid of another", "boot"])
def test_a_stale_claim_is_taken_over(
    tmp_path: Path, source: Path, format: Packing, change: str
) -> None:
    claim = _abandoned(source, tmp_path / "o", format)
    holder = json.loads(claim.read_bytes())
    holder |= {"pid": os.getpid()} if change != "boot" else {"boot": "another"}
    claim.write_text(json.dumps(holder), encoding="utf-8")
    subprocess.run(command(source, tmp_path / "o", format, "-q"), check=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["o"]


@one_format
def test_a_changed_source_is_not_mixed_with_what_is_done(
    tmp_path: Path, format: Packing, run: Run
) -> None:
    files = plain_files(180, 9000)
    source = write_tree(tmp_path / "source", files)
    destination = tmp_path / "o"
    _abandoned(source, destination, format)
    write_tree(source, {"a/another.jpg": jpeg(4000)})
    told = run(*command(source, destination, format, "-q")[len(COMMAND) :])
    assert told.status == 1
    assert "unfinished run of another source or other options" in told.err
    assert not destination.exists()
    told = run(*command(source, destination, format, "-q", "--overwrite")[len(COMMAND) :])
    assert told.status == 0
    with open_dataset(destination) as dataset:
        assert len(dataset) == len(files) + 1


@one_format
@pytest.mark.parametrize(
    "more",
    [["--shuffle", "1"], ["--shard-samples", "6"], ["--shard-size", "1MB"], ["--check", "decode"]],
    ids=lambda more: more[0],
)
def test_other_options_are_not_mixed_with_what_is_done(
    tmp_path: Path, source: Path, format: Packing, run: Run, more: list[str]
) -> None:
    destination = tmp_path / "o"
    _abandoned(source, destination, format)
    before = finished_shards(destination)
    told = run(*command(source, destination, format, "-q", *more)[len(COMMAND) :])
    assert told.status == 1
    assert "other options" in told.err
    assert still_there(before, destination)
    assert run(*command(source, destination, format, "-q")[len(COMMAND) :]).status == 0


@one_format
def test_without_resuming_it_begins_anew(
    tmp_path: Path, source: Path, format: Packing, run: Run
) -> None:
    destination = tmp_path / "o"
    _abandoned(source, destination, format)
    told = run(*command(source, destination, format, "--no-resume")[len(COMMAND) :])
    assert told.status == 0
    assert "going on" not in told.err
    assert verify(destination).faults == []


def test_an_interrupted_overwrite_keeps_what_was_there(
    tmp_path: Path, source: Path, format: Packing
) -> None:
    destination = tmp_path / "o"
    small = write_tree(tmp_path / "small", plain_files(4))
    subprocess.run(command(small, destination, format, "-q"), check=True)
    old = contents(destination)
    with (
        open_dataset(destination) as reader,
        start(command(source, destination, format, "--overwrite")) as run,
    ):
        wait_for_shard(run, destination)
        run.kill()
        run.communicate(timeout=_TIMEOUT)
        assert contents(destination) == old
        assert len(list(reader)) == 4
    assert verify(destination).faults == []
    subprocess.run(command(source, destination, format, "-q", "--overwrite"), check=True)
    with open_dataset(destination) as new:
        assert len(new) == 120
    assert not destination.with_name("o.partial").exists()


def test_a_smaller_dataset_replaces_a_larger_one_whole(
    tmp_path: Path, source: Path, format: Packing, run: Run
) -> None:
    destination, small = tmp_path / "o", write_tree(tmp_path / "small", plain_files(4))
    assert run(*command(source, destination, format, "-q")[len(COMMAND) :]).status == 0
    before = contents(destination)
    refused = run(*command(small, destination, format, "-q")[len(COMMAND) :])
    assert refused.status == 1
    assert "--overwrite" in refused.err
    assert contents(destination) == before
    told = run(*command(small, destination, format, "-q", "--overwrite")[len(COMMAND) :])
    assert told.status == 0
    assert len(list(destination.glob("shard-000000.*"))) == len(list(destination.glob("shard-*")))
    assert verify(destination).samples == 4


# Storage that refuses -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 2.5 MB of files that make some 3 MB of pixels."""
    files = {f"a/{n:03d}.jpg": jpeg(n, 100_000, 200, 200) for n in range(25)}
    return write_tree(tmp_path_factory.mktemp("large") / "tree", files)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(place)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def resized(disk: Path, kilobytes: int) -> None:
    options = f"remount,size={kilobytes}k"
    subprocess.run(["mount", "-o", options, str(disk)], check=True)


def _is_full(said: str) -> bool:
    line = said.splitlines()[-1]
    assert "Traceback" not in said
    assert line.startswith("packer: ")
    assert re.search(r"\d+ bytes are needed|more is needed|no room|[Nn]o space", line), line
    return True


def test_a_full_disk_ends_it_cleanly_and_it_goes_on_with_more_room(
    small_disk: Path, large: Path, format: Packing, run: Run
) -> None:
    destination = small_disk / "o"
    arguments = ("convert", large, destination, *format.arguments, "--shard-size", "700kB")
    kept: dict[str, tuple[int, int]] = {}
    told, size = None, 4
    while True:
        resized(small_disk, size)
        told = run(*arguments)
        if not told.status:
            break
        assert told.status == 1, size
        assert _is_full(told.err), size
        if size > 400:
            assert re.search(r"\d+ bytes are needed, \d+ are free", told.err), told.err
        assert not destination.exists()
        assert still_there(kept, destination), size
        kept = finished_shards(destination)
        size = size * 3 // 2 if size < 400 else size + 230
        assert size < 20_000
    assert len(kept) >= 3
    assert "going on with an unfinished run" in told.err
    assert verify(destination).faults == []
    assert [entry.name for entry in small_disk.iterdir()] == ["o"]


def test_a_full_disk_spares_the_old_dataset(
    small_disk: Path, tmp_path: Path, large: Path, format: Packing, run: Run
) -> None:
    small = write_tree(tmp_path / "small", plain_files(2))
    destination = small_disk / "o"
    assert run("convert", small, destination, *format.arguments).status == 0
    before = contents(destination)
    told = run("convert", large, destination, *format.arguments, "--overwrite")
    assert told.status == 1
    assert _is_full(told.err)
    assert contents(destination) == before


def test_a_limit_on_the_size_of_files_ends_it_cleanly(
    tmp_path: Path, large: Path, format: Packing
) -> None:
    destination = tmp_path / "o"
    arguments = [*COMMAND, "convert", str(large), str(destination), *format.arguments]
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)); "
    limited = [sys.executable, "-c", code + COMMAND[2], *arguments[len(COMMAND) :]]
    with start(limited) as run:
        _, said = run.communicate(timeout=_TIMEOUT)
    assert run.returncode == 1
    assert _is_full(said)
    assert not destination.exists()
    subprocess.run(arguments, check=True, capture_output=True)
    assert verify(destination).faults == []


def test_a_limit_on_memory_maps_is_no_obstacle(tmp_path: Path, format: Packing) -> None:
    source = write_tree(tmp_path / "t", plain_files(60))
    code = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); " + COMMAND[2]
    done = subprocess.run(
        [
            *(sys.executable, "-c", code, "convert", str(source), str(tmp_path / "o")),
            *(*format.arguments, "--shard-samples", "1", "-q", "--workers", "8"),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(verify(tmp_path / "o").faults) == 0


# Destinations that won't do -----------------------------------------------------------------


@one_format
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("file", 1),
        ("file/below", 1),
        ("folder", 1),
        ("n" * 250, 1),
        ("n" * 300, 1),
        ("source", 2),
        ("source/o", 2),
        ("source/a/o", 2),
        ("link/o", 2),
        ("/proc/o", 1),
        (".", 1),
        ("..", 1),
        ("/", 2),
    ],
)
def test_a_destination_that_will_not_do_is_refused_in_words(
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    format: Packing,
    run: Run,
    name: str,
    status: int,
) -> None:
    place = tmp_path / "place"
    write_tree(place / "source", plain_files(3))
    write_tree(place / "folder", {"precious.txt": b"precious"})
    (place / "file").write_bytes(b"precious")
    (place / "link").symlink_to("source")
    monkeypatch.chdir(place)
    before = contents(tmp_path)
    for more in ((), ("--overwrite",)):
        told = run("convert", "source", name, *format.arguments, "-q", *more)
        assert told.status in ({1, 2} if more else {status}), told.err
        assert told.out == ""
        assert "Traceback" not in told.err
        assert len(told.err.splitlines()) == 1
        assert contents(tmp_path) == before
        assert not list(place.rglob("*.partial"))


@one_format
def test_a_packed_source_is_no_destination(tmp_path: Path, format: Packing, run: Run) -> None:
    source = write_tree(tmp_path / "t", plain_files(3))
    assert run("convert", source, tmp_path / "o", *format.arguments).status == 0
    before = contents(tmp_path / "o")
    told = run("convert", tmp_path / "o", tmp_path / "o", *format.arguments, "--overwrite")
    assert told.status == 2
    assert contents(tmp_path / "o") == before


@one_format
def test_an_empty_folder_may_be_the_destination(tmp_path: Path, format: Packing, run: Run) -> None:
    source = write_tree(tmp_path / "t", plain_files(3))
    (tmp_path / "o").mkdir()
    assert run("convert", source, tmp_path / "o", *format.arguments).status == 0
    assert verify(tmp_path / "o").faults == []


@one_format
def test_the_folders_above_a_destination_are_made(
    tmp_path: Path, format: Packing, run: Run
) -> None:
    source = write_tree(tmp_path / "t", plain_files(3))
    assert run("convert", source, tmp_path / "x/y/o", *format.arguments).status == 0
    assert verify(tmp_path / "x/y/o").faults == []


@one_format
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "dataset"])
def test_a_destination_without_permission_is_refused_in_words(
    tmp_path: Path, format: Packing, *, packed: bool
) -> None:
    source = write_tree(tmp_path / "t", plain_files(3))
    if packed:
        convert(open_source(source), tmp_path / "p", format=format.name)
        source = tmp_path / "p"
    code = (
        "import os, sys; from packer.cli import main; import packer.formats.webdataset;"
        "os.chdir(sys.argv[1]); os.setgroups([]); os.setgid(65534); os.setuid(65534);"
        "sys.argv = ['packer', *sys.argv[2:]]; main()"
    )
    tmp_path.chmod(0o755)
    arguments = ["convert", source.name, "o", *format.arguments, "-q"]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "Permission denied" in done.stderr.splitlines()[-1]
    assert len(done.stderr.splitlines()) == 1


@one_format
def test_a_read_only_place_is_refused_in_words(
    small_disk: Path, tmp_path: Path, format: Packing, run: Run
) -> None:
    source = write_tree(tmp_path / "t", plain_files(3))
    convert(open_source(source), tmp_path / "p", format=format.name)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for place in (source, tmp_path / "p"):
        told = run("convert", place, small_disk / "o", *format.arguments, "-q")
        assert told.status == 1
        assert "Traceback" not in told.err
        assert "Read-only" in told.err


@one_format
def test_a_source_that_vanishes_stops_the_run_in_words(
    tmp_path: Path, format: Packing, run: Run
) -> None:
    source = write_tree(tmp_path / "t", plain_files(3))
    opened = open_source(source)
    shutil.rmtree(source)
    with pytest.raises(PackError, match="No such file"):
        convert(opened, tmp_path / "o", format=format.name)
    assert not (tmp_path / "o").exists()
    assert run("convert", source, tmp_path / "o", *format.arguments).status == 1
