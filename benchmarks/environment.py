"""What a measurement was made on: machine, system, libraries, storage, load."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import datetime, timezone
from pathlib import Path

from packer.bench import file_system
from readers.sample import JsonValue

_LIBRARIES = (
    "dataset-packer",
    "click",
    "h5py",
    "lmdb",
    "numpy",
    "pillow",
    "pyarrow",
    "simplejpeg",
    "webdataset",
    "xxhash",
)


def environment(*places: Path) -> dict[str, JsonValue]:
    """Describes the machine and the file systems of some places.

    Args:
        places: Input and output of the measurement.
    """
    return {
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load": list(os.getloadavg()),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "file_systems": {str(place): file_system(place) for place in places},
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _field(file: str, name: str) -> str:
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return platform.processor()
