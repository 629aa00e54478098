"""Read side: opens packed datasets for training."""

from importlib import import_module
from typing import TYPE_CHECKING

from readers.access import Access
from readers.dataset import Dataset
from readers.errors import (
    CorruptDatasetError,
    DatasetNotFoundError,
    FormatError,
    PackError,
    SampleError,
    UnsupportedVersionError,
)
from readers.opening import open_dataset
from readers.protocols import Reader, Source, read_many
from readers.sample import Sample

if TYPE_CHECKING:
    from readers.block_shuffle import BlockShuffle
    from readers.loader import MonitoredLoader
    from readers.loading.transform import ImageTransform
    from readers.pixel_cache import PixelCache

__all__ = [
    "Access",
    "BlockShuffle",
    "CorruptDatasetError",
    "Dataset",
    "DatasetNotFoundError",
    "FormatError",
    "ImageTransform",
    "MonitoredLoader",
    "PackError",
    "PixelCache",
    "Reader",
    "Sample",
    "SampleError",
    "Source",
    "UnsupportedVersionError",
    "open_dataset",
    "read_many",
]

_ON_DEMAND = {
    "BlockShuffle": "readers.block_shuffle",
    "ImageTransform": "readers.loading.transform",
    "MonitoredLoader": "readers.loader",
    "PixelCache": "readers.pixel_cache",
}
"""What takes long to import, and packing and reading do without."""


def __getattr__(name: str) -> object:
    if name in _ON_DEMAND:
        return getattr(import_module(_ON_DEMAND[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
