"""What can be told of a dataset and of the machine."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from readers.monitor.proxy import unwrapped

_DEEPEST = 8
_MOUNTS = Path("/proc/self/mountinfo")
_MOUNT_POINT = 4
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_QUOTA_V1 = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
_PERIOD_V1 = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")


class DatasetFacts(NamedTuple):
    """What is known of a dataset; empty where nothing is."""

    path: str
    """Absolute."""
    format: str
    pixels: bool
    storage: str


def dataset_facts(dataset: object) -> DatasetFacts:
    """Looks for a dataset of ours, or for a `root` as torchvision has it, in a dataset."""
    for part in parts_of(dataset):
        root = getattr(part, "root", None)
        if not isinstance(root, (str, os.PathLike)):
            continue
        manifest = getattr(part, "manifest", None)
        ours = getattr(manifest, "format", None)
        return DatasetFacts(
            str(Path(root).absolute()),
            ours or "",
            bool(getattr(manifest, "pixels", False)),
            filesystem_of(Path(root)),
        )
    return DatasetFacts("", "", pixels=False, storage="")


def parts_of(dataset: object) -> Iterator[object]:
    """Goes through a dataset and those inside it, as `Subset` and `ConcatDataset` hold them."""
    level = [unwrapped(dataset)]
    for _ in range(_DEEPEST):
        yield from level
        level = [unwrapped(inner) for part in level for inner in _inside(part)]


def _inside(part: object) -> Iterator[object]:
    attributes = getattr(part, "__dict__", {})
    # A property is an adapter's of ours; asking for any attribute might ask the part within again.
    told = isinstance(getattr(type(part), "dataset", None), property)
    if (one := getattr(part, "dataset") if told else attributes.get("dataset")) is not None:  # noqa: B009 - not of `object`
        yield one
    if isinstance(many := attributes.get("datasets"), list):
        yield from many


def filesystem_of(path: Path) -> str:
    """Tells the type of the file system that holds a path; empty if unknown."""
    with contextlib.suppress(OSError, ValueError):
        mounts = {}
        for line in _MOUNTS.read_text("utf-8", "replace").splitlines():
            fields, _, rest = line.partition(" - ")
            mounts[fields.split()[_MOUNT_POINT]] = rest.split()[0]
        real = path.resolve()
        for place in (real, *real.parents):
            # Blanks in mount points are written in octal.
            if (kind := mounts.get(str(place).replace(" ", "\\040"))) is not None:
                return kind
    return ""


def usable_cores() -> int:
    """Tells the cores that this process may use, by its affinity and by the quota of its cgroup."""
    cores = len(os.sched_getaffinity(0))
    with contextlib.suppress(OSError, ValueError):
        if _QUOTA.exists():
            quota, period = _QUOTA.read_text("ascii").split()
        else:
            quota, period = _QUOTA_V1.read_text("ascii"), _PERIOD_V1.read_text("ascii")
        if quota.strip() not in {"max", "-1"}:
            cores = min(cores, math.ceil(int(quota) / int(period)))
    return max(1, cores)
