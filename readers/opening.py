"""Opens a dataset wherever its manifest says how."""

from __future__ import annotations

import os
from pathlib import Path

from readers.access import Access, AccessOption
from readers.dataset import Check, Dataset
from readers.errors import CorruptDatasetError, UnsupportedVersionError
from readers.registry import FORMATS


def open_dataset(
    path: str | os.PathLike[str],
    *,
    copy: bool = True,
    check: Check = "first",
    access: AccessOption = None,
) -> Dataset:
    """Opens a packed dataset of any format.

    Args:
        path: The dataset's directory.
        copy: Whether images are `bytes` of their own. Without, they are `memoryview`s (or arrays)
            that may not be written to, valid as long as they live. On local storage those are
            views of the page cache: faster, but a file that another program cuts while it is read
            ends the process.
        check: When images are held against their checksum: the `first` time that a process reads
            one, `always` or `never`.
        access: How bytes are fetched: None for what suits the storage (`packer inspect` shows it),
            "mmap" or "pread", or an `Access`, which says everything.

    Raises:
        DatasetNotFoundError: There is no complete dataset at the path.
        UnsupportedVersionError: A newer version wrote it, or its format isn't known here.
        CorruptDatasetError: Its manifest is damaged.
        OptionError: There is no such access.
    """
    if access is not None and not isinstance(access, Access):
        Access(method=access)  # raises, before anything is opened, where there is no such method
    dataset = Dataset(Path(path), copy=copy, check=check, access=access)
    entry = FORMATS.get(dataset.manifest.format)
    if entry is None:
        raise UnsupportedVersionError(
            f"{path} has the format {dataset.manifest.format!r}, which this library doesn't know: "
            "upgrade dataset-packer",
            path=str(path),
        )
    if not (entry.pixels if dataset.manifest.pixels else entry.encoded):
        raise CorruptDatasetError(
            f"{path} claims to hold {'pixels' if dataset.manifest.pixels else 'files'} in format "
            f"{entry.name}, which can't be; restore it or pack the dataset again",
            path=str(path),
        )
    if dataset.manifest.version > entry.version:
        raise UnsupportedVersionError(
            f"{path} has version {dataset.manifest.version} of format {entry.name}, this library "
            f"reads up to {entry.version}: upgrade dataset-packer",
            path=str(path),
        )
    return dataset
