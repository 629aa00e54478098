"""Reading and packing on a real network file system: sshfs, over a pipe to an SFTP server."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from packer.convert import convert
from packer.options import ConvertOptions
from packer.verify import verify
from readers.access import Access
from readers.errors import StorageError
from readers.loader import MonitoredLoader
from readers.opening import open_dataset
from readers.storage import storage_of
from tests.trees import MemorySource, Packing, a_sample, contents, image_bytes, jpeg

_ROWS = 60
_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")
_WAIT = 10.0


@dataclass(frozen=True)
class Mount:
    """A directory of this machine, and the same through the network file system."""

    here: Path
    there: Path
    server: int


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mount]:
    """Mounts a directory."""
    server = next((path for path in _SERVERS if Path(path).exists()), None)
    if server is None or shutil.which("sshfs") is None or shutil.which("fusermount3") is None:
        pytest.skip("sshfs or its server isn't installed")
    if os.getuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip("mounting needs root and /dev/fuse")
    root = tmp_path_factory.mktemp("sshfs")
    here, there = root / "here", root / "there"
    here.mkdir()
    there.mkdir()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        serving = subprocess.Popen([server], stdin=theirs.fileno(), stdout=theirs.fileno())
        mounting = subprocess.Popen(
            ["sshfs", f"server:{here}", str(there), "-f", "-o", "passive"],
            stdin=ours.fileno(),
            stdout=ours.fileno(),
            stderr=subprocess.PIPE,
        )
    end = time.monotonic() + _WAIT
    while not there.is_mount() and mounting.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    try:
        if not there.is_mount():
            pytest.skip("sshfs can't mount here")
        yield Mount(here, there, serving.pid)
    finally:
        os.kill(serving.pid, signal.SIGCONT)
        subprocess.run(["fusermount3", "-u", "-z", str(there)], check=False)
        for process in (mounting, serving):
            process.terminate()
            process.wait(_WAIT)
        if mounting.stderr is not None:
            mounting.stderr.close()


def _source() -> MemorySource:
    samples = [a_sample(n, f"k/{n}", jpeg(n, 30_000))._replace(label=0) for n in range(_ROWS)]
    return MemorySource(samples, ("a",))


@pytest.fixture(scope="module")
def packed(mount: Mount) -> Path:
    """A dataset there; not to be changed."""
    convert(_source(), mount.here / "packed", format="webdataset")
    return mount.there / "packed"


def test_packing_there_gives_the_same_bytes_as_here(mount: Mount, format: Packing) -> None:
    options = ConvertOptions(image=format.policy, shard_samples=25)
    name = f"same-{format}"
    for root in (mount.here, mount.there):
        place = root / ("local" if root is mount.here else "far") / name
        convert(_source(), place, format=format.name, options=options)
    far, local = mount.there / "far" / name, mount.here / "local" / name
    assert contents(far) == contents(local)
    assert not verify(far).faults


def test_it_is_known_as_a_network_and_read_by_many_requests(packed: Path) -> None:
    assert storage_of(packed).kind == "network"
    with open_dataset(packed) as dataset:
        survey = dataset.survey()
        assert survey.storage.file_system == "fuse.sshfs"
        assert survey.choice.access.method == "pread"
        assert survey.choice.access.requests >= 16
        samples = dataset.read_many([5, 3, 3, -1])
        assert [sample.key for sample in samples] == ["k/5", "k/3", "k/3", f"k/{_ROWS - 1}"]
        assert image_bytes(samples[0]) == jpeg(5, 30_000)


def test_a_server_that_stalls_ends_in_an_error_and_goes_on_when_it_is_back(
    mount: Mount, packed: Path
) -> None:
    with open_dataset(packed, access=Access(requests=4, timeout=0.3)) as dataset:
        dataset.read_many([0, 1])
        _forget(packed)
        os.kill(mount.server, signal.SIGSTOP)
        try:
            with pytest.raises(StorageError, match="not answered"):
                dataset.read_many(range(20, 40))
        finally:
            os.kill(mount.server, signal.SIGCONT)
        samples = dataset.read_many(range(20, 40))
        assert [image_bytes(sample) for sample in samples] == [
            jpeg(row, 30_000) for row in range(20, 40)
        ]


def test_a_loader_waits_for_a_server_that_stalls(mount: Mount, packed: Path) -> None:
    _forget(packed)
    with open_dataset(packed, access=Access(requests=4)) as dataset:
        loader = MonitoredLoader(dataset, 5, transform=_key, collate=list, workers=2)
        with loader:
            batches = iter(loader)
            found = list(next(batches))
            os.kill(mount.server, signal.SIGSTOP)
            back = threading.Timer(0.3, os.kill, (mount.server, signal.SIGCONT))
            back.start()
            found += [key for batch in batches for key in batch]
            back.join()
    assert found == [f"k/{row}" for row in range(_ROWS)]


def _key(sample: object) -> object:
    return getattr(sample, "key", None)


_READING = """
import sys, threading
from readers import open_dataset
from readers.access import Access
dataset = open_dataset(sys.argv[1], access=Access(requests=4, gap=0))
dataset.read_many([0, 1])
print("ready", flush=True)
sys.stdin.readline()
under_way = dataset.read_ahead(range(60))
print("end", flush=True)
"""


def test_a_program_ends_while_the_server_stalls_at_the_latest_when_it_is_back(
    mount: Mount, packed: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _READING, str(packed)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        _forget(packed)
        os.kill(mount.server, signal.SIGSTOP)
        try:
            program.stdin.write("\n")
            program.stdin.flush()
            assert program.stdout.readline() == "end\n"
            time.sleep(0.2)
        finally:
            os.kill(mount.server, signal.SIGCONT)
        assert program.wait(_WAIT) == 0


def _forget(dataset: Path) -> None:
    """Puts the shard out of this machine's page cache."""
    descriptor = os.open(dataset / "shard-000000.tar", os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
