"""What a path lies on: memory, a disk of this machine, or a server behind a network."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["memory", "local", "network", "unknown"]

_MOUNTS = Path("/proc/self/mountinfo")
_DEVICES = Path("/sys/dev/block")
_MEMORY = frozenset({"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"})
_LOCAL = frozenset(
    {"bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "fuseblk", "iso9660"}
    | {"jfs", "msdos", "nilfs2", "ntfs", "ntfs3", "overlay", "reiserfs", "squashfs", "udf", "vfat"}
    | {"xfs", "zfs"}
)
_NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"}
    | {"nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "quobyte", "smb3", "smbfs", "wekafs"}
)
_NETWORK_FUSE = re.compile(
    r"fuse\.(sshfs|s3|gcs|blob|azure|rclone|gluster|ceph|juicefs|moose|mfs|lizard|seaweed|curvefs|"
    r"dav|curlftp|nfs|smb|hdfs|alluxio|goofys|objectivefs|mount-s3|mountpoint|quobyte|xtreemfs|cvmfs)"
)
_ESCAPED = re.compile(r"\\([0-7]{3})")
_KIBIBYTE = 1024
_SHOWN_OPTIONS = re.compile(r"(ro|rw|vers|rsize|wsize|proto|nconnect|cache|max_read|direct_io)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A mounted file system, as far as it matters for reading."""

    kind: Kind
    """`unknown` where the type doesn't tell: FUSE, shares of a host with its guests."""
    file_system: str
    """Type, such as `ext4`, `nfs4` or `fuse.sshfs`; empty where the system doesn't say."""
    source: str = ""
    """Device or server, as it was mounted."""
    mount_point: str = ""
    options: tuple[str, ...] = ()
    """Options of the mount that bear on reading."""
    device: tuple[int, int] = (0, 0)
    """Number of the device, of the mount on its own."""
    mount: int = -1
    """Number of the mount in this mount namespace."""
    rotational: bool | None = None
    """What the block device says of itself (virtual disks often say it wrongly); None without."""
    read_ahead: int | None = None
    """Bytes that the kernel reads ahead on it; None where there is no block device."""

    @property
    def identity(self) -> tuple[int, int, int]:
        """Names the mount within this process."""
        return (*self.device, self.mount)

    def describe(self) -> str:
        """Says it in words."""
        if not self.file_system:
            return "unknown: the system doesn't say"
        words = [f"{self.kind}: {self.file_system}"]
        if self.source:
            words.append(f"of {self.source}")
        if self.mount_point:
            words.append(f"on {self.mount_point}")
        if self.options:
            words.append(f"({','.join(self.options)})")
        if self.read_ahead is not None:
            words.append(f"read-ahead {self.read_ahead >> 10} KiB")
        if self.rotational:
            words.append("rotational, it says")
        return " ".join(words)


def storage_of(path: str | os.PathLike[str]) -> Storage:
    """Says what a path lies on.

    Raises:
        OSError: There is no such path.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return storage_beneath(descriptor)
    finally:
        os.close(descriptor)


def storage_beneath(descriptor: int) -> Storage:
    """Says what an open file or directory lies on.

    The kernel tells the mount of a descriptor (proc(5), fdinfo), so neither bind mounts nor mounts
    that hide each other mislead.
    """
    number = os.fstat(descriptor).st_dev
    device = os.major(number), os.minor(number)
    mount = _mount_of(descriptor)
    fields = _mount_fields(mount)
    if fields is None:
        return Storage(kind="unknown", file_system="", device=device, mount=mount)
    ours, theirs = fields
    file_system, source = theirs[0], _plain(theirs[1])
    options = {*ours[5].split(","), *(theirs[2].split(",") if len(theirs) > 2 else ())}  # noqa: PLR2004
    queue = _queue_of(device) or _queue_of(_device_of(ours[2]))
    return Storage(
        kind=kind_of(file_system),
        file_system=file_system,
        source="" if source == "none" else source,
        mount_point=_plain(ours[4]),
        options=tuple(sorted(filter(_SHOWN_OPTIONS.match, options))),
        device=device,
        mount=mount,
        rotational=None if queue is None else _number(queue / "rotational") == 1,
        read_ahead=None if queue is None else _read_ahead(queue),
    )


def kind_of(file_system: str) -> Kind:
    """Sorts a type of file system, as the mount table names it."""
    if file_system in _MEMORY:
        return "memory"
    if file_system in _LOCAL:
        return "local"
    if file_system in _NETWORK:
        return "network"
    if _NETWORK_FUSE.match(file_system):
        return "network"
    return "unknown"


def _mount_of(descriptor: int) -> int:
    try:
        text = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="utf-8")
    except OSError:
        return -1
    found = re.search(r"^mnt_id:\s*(\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else -1


def _mount_fields(mount: int) -> tuple[list[str], list[str]] | None:
    """Finds the line of a mount, see proc(5): its own fields, and those of the file system."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    for line in lines:
        ours, _, theirs = line.partition(" - ")
        if ours.partition(" ")[0] == str(mount):
            fields = ours.split(" "), theirs.split(" ")
            return fields if len(fields[0]) > 5 and len(fields[1]) > 1 else None  # noqa: PLR2004
    return None


def _device_of(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(":")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)


def _queue_of(device: tuple[int, int]) -> Path | None:
    """Finds the request queue of a device, which for a partition is that of the whole disk."""
    if not device[0]:
        return None  # no block device: numbers of this kind are made up
    directory = (_DEVICES / f"{device[0]}:{device[1]}").resolve()
    return next((q for d in (directory, directory.parent) if (q := d / "queue").is_dir()), None)


def _read_ahead(queue: Path) -> int | None:
    kibibytes = _number(queue / "read_ahead_kb")
    return None if kibibytes is None else kibibytes * _KIBIBYTE


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _plain(text: str) -> str:
    """Undoes the mount table's octal escapes of blanks."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)
