"""What to do, in words that name the command or the option."""

from __future__ import annotations

from readers.monitor.figures import Figures
from readers.monitor.record import UNKNOWN, LoaderFacts
from readers.monitor.worker_count import WorkerCount

_NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "lustre",
    "ceph",
    "gluster",
    "beegfs",
    "gpfs",
    "afs",
    "9p",
    "fuse",
)
"""How the names of file systems begin that may lie behind a network (`/proc/filesystems`)."""

_WORKER_OPTION = {"torch": "num_workers", "paddle": "num_workers", "megengine": "num_workers"}
_PREFETCH_OPTION = {"torch": "prefetch_factor", "paddle": "prefetch_factor"}
_FIXED_PREFETCH = "megengine"
_FIXED_ORDER = ("paddle", "megengine")
"""Frameworks whose loaders have no option for it: what does it there is ours."""


def remote(facts: LoaderFacts) -> bool:
    """Tells whether the dataset lies behind a network."""
    return facts.storage.startswith(_NETWORK)


def source(facts: LoaderFacts) -> str:
    """Names what `packer convert` would read."""
    return facts.dataset or "IMAGES"


def packed(facts: LoaderFacts) -> str:
    """Says how to pack the files, or what to do where they are packed already."""
    if not facts.format:
        format = "webdataset" if remote(facts) else "lmdb"
        return f"pack the files: `packer convert {source(facts)} PACKED --format {format}`"
    return f"store fewer bytes: {smaller(facts)}"


def smaller(facts: LoaderFacts) -> str:
    """Gives the command that packs smaller images."""
    return (
        f"`packer convert {source(facts)} SMALLER --format {facts.format or 'lmdb'}"
        " --image resize --side 256`"
    )


def staged(facts: LoaderFacts) -> str:
    """Says how to bring the dataset nearer."""
    place = "a local SSD" if remote(facts) else "a faster disk, or leave more memory to its cache"
    return f"copy the dataset to {place}"


def workers(facts: LoaderFacts, count: WorkerCount) -> str:
    """Names the number of workers and what it follows from."""
    return f"{_WORKER_OPTION.get(facts.framework, 'workers')}={count.workers} ({count.why})"


def more_workers(figures: Figures, count: WorkerCount | None) -> str:
    """Adds the advice on workers where more of them help; else nothing."""
    if count is None or count.workers <= figures.facts.workers:
        return ""
    return f"; {workers(figures.facts, count)}"


def deeper(facts: LoaderFacts) -> str:
    """Says how to make more batches ahead."""
    option = _PREFETCH_OPTION.get(facts.framework, "prefetch")
    depth = 2 if facts.prefetch == UNKNOWN else facts.prefetch
    said = f"{option}={max(4, 2 * depth)}"
    return f"`MonitoredLoader({said})`" if facts.framework == _FIXED_PREFETCH else said


def unordered(facts: LoaderFacts) -> str:
    """Says how to let batches pass each other."""
    said = "in_order=False"
    return f"`MonitoredLoader({said})`" if facts.framework in _FIXED_ORDER else said
