"""What a path lies on, what is measured of it, and what access is chosen for it."""

from __future__ import annotations

import os
import pickle
import time
from dataclasses import replace
from pathlib import Path

import pytest

from packer.convert import convert
from readers import storage as storage_module
from readers.access import Access, AccessOption, choose, wants_probe
from readers.errors import OptionError
from readers.opening import open_dataset
from readers.probe import Probe, probe
from readers.storage import Kind, Storage, kind_of, storage_of
from tests.trees import MemorySource, a_sample, jpeg

_FAR = Probe(latency=0.02, requests=64, gain=40.0, bandwidth=1e8, gap=50_000, nbytes=1)
_NEAR = replace(_FAR, latency=0.0001)
_MEMORY = "/dev/shm"  # noqa: S108 - nothing is written there
_CACHED = replace(_FAR, latency=0.000005)


@pytest.mark.parametrize(
    ("file_system", "kind"),
    [
        ("ext4", "local"),
        ("xfs", "local"),
        ("fuseblk", "local"),
        ("overlay", "local"),
        ("tmpfs", "memory"),
        ("nfs4", "network"),
        ("cifs", "network"),
        ("lustre", "network"),
        ("fuse.sshfs", "network"),
        ("fuse.unionfs", "unknown"),
        ("fuse.s3fs", "network"),
        ("fuse.glusterfs", "network"),
        ("fuse.rclone", "network"),
        ("fuse.gocryptfs", "unknown"),
        ("virtiofs", "unknown"),
        ("", "unknown"),
    ],
)
def test_types_of_file_systems_are_sorted(file_system: str, kind: Kind) -> None:
    assert kind_of(file_system) == kind


def test_a_path_is_held_against_the_mount_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = storage_of(tmp_path)
    assert real.file_system
    assert real.mount >= 0
    table = tmp_path / "mountinfo"
    table.write_text(
        f"{real.mount} 1 0:99 / /mnt/far\\040away rw,relatime shared:7 master:1 - "
        "nfs4 server:/export\\040one rw,vers=4.2,rsize=1048576,hard\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(storage_module, "_MOUNTS", table)
    found = storage_of(tmp_path)
    assert (found.kind, found.source, found.mount_point) == (
        "network",
        "server:/export one",
        "/mnt/far away",
    )
    assert "rsize=1048576" in found.options
    for broken in ("", f"{real.mount} - \n", f"{real.mount} 1 0:99 / /mnt - nfs4\n", "\xff"):
        table.write_text(broken, encoding="latin-1")
        assert storage_of(tmp_path).kind == "unknown"


def test_memory_is_read_in_turn() -> None:
    found = storage_of(_MEMORY)
    if found.file_system != "tmpfs":
        pytest.skip(f"{_MEMORY} is no memory here")
    assert found.kind == "memory"
    assert choose(found).access.requests == 1


@pytest.mark.parametrize(
    ("kind", "option", "copy", "found", "method", "at_once"),
    [
        ("memory", None, True, None, "pread", False),
        ("local", None, True, None, "pread", True),
        ("local", None, False, None, "mmap", True),
        ("local", "pread", False, None, "pread", True),
        ("network", None, True, _FAR, "pread", True),
        ("network", None, False, _FAR, "pread", True),
        ("network", "mmap", True, None, "mmap", True),
        ("network", None, True, None, "pread", True),
        ("unknown", None, False, _FAR, "pread", True),
        ("unknown", None, False, _NEAR, "mmap", True),
        ("unknown", None, False, None, "pread", True),
        ("network", None, False, _CACHED, "pread", True),
        ("network", Access(requests=3), False, _FAR, "pread", True),
    ],
)
def test_the_access_suits_the_storage_unless_told(  # noqa: PLR0917 - parameters of the test
    kind: Kind,
    option: AccessOption,
    copy: bool,  # noqa: FBT001 - a parameter of the test
    found: Probe | None,
    method: str,
    at_once: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    storage = Storage(kind=kind, file_system="x")
    choice = choose(storage, option, copy=copy, probe=found)
    assert choice.access.method == method
    assert (choice.access.requests > 1) == at_once
    assert choice.reason
    if isinstance(option, Access):
        assert choice.access == option
    elif found is _FAR:
        assert choice.access.requests == _FAR.requests
        assert choice.access.gap == _FAR.gap
    assert wants_probe(storage, option) == (
        kind in ("network", "unknown") and option in (None, "pread")
    )


def test_what_is_no_access_is_refused(tmp_path: Path) -> None:
    for fields in ({"requests": 0}, {"requests": 10_000}, {"gap": -1}, {"timeout": 0.0}):
        with pytest.raises(OptionError):
            Access(**fields)
    path = _packed(tmp_path)
    with pytest.raises(OptionError, match="mmap"):
        open_dataset(path, access="fast")  # type: ignore[arg-type]  # that is the point


def test_an_access_goes_with_the_reader_into_a_pickle(tmp_path: Path) -> None:
    access = Access(requests=3, timeout=5.0)
    with open_dataset(_packed(tmp_path), access=access) as dataset:
        again = pickle.loads(pickle.dumps(dataset))  # noqa: S301 - our own
        assert again.survey().choice.access == access
        assert again[1] == dataset[1]


def _packed(tmp_path: Path) -> Path:
    path = tmp_path / "packed"
    convert(
        MemorySource([a_sample(n, f"{n}", jpeg(n)) for n in range(4)], ("a",)),
        path,
        format="webdataset",
    )
    return path


def test_a_probe_finds_that_many_requests_at_once_pay() -> None:
    def far(_descriptor: int, length: int, _offset: int) -> bytes:
        time.sleep(0.003 + length / 1e9)
        return bytes(length)

    with Path(os.devnull).open("rb") as file:
        found = probe([(file.fileno(), 1 << 30)], 100_000, seconds=2.0, read=far)
    assert found is not None
    assert found.is_cold
    assert found.latency >= 0.003
    assert found.requests >= 4
    assert found.gain > 2
    assert found.nbytes <= 48 << 20


def test_a_probe_gives_up_in_time_where_nothing_answers() -> None:
    began = time.monotonic()
    with Path(os.devnull).open("rb") as file:
        found = probe(
            [(file.fileno(), 1 << 30)], 100_000, seconds=0.05, read=lambda *_: time.sleep(1)
        )
    assert found is None
    assert time.monotonic() - began < 0.5


def test_files_too_small_to_measure_are_left_alone(tmp_path: Path) -> None:
    with open_dataset(_packed(tmp_path)) as dataset:
        assert dataset.survey().probe is None
