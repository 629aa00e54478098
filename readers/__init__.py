"""Read side: opens packed datasets for training."""

from readers.dataset import Dataset
from readers.errors import (
    CorruptDatasetError,
    DatasetNotFoundError,
    FormatError,
    PackError,
    SampleError,
    UnsupportedVersionError,
)
from readers.loader import MonitoredLoader
from readers.loading.transform import ImageTransform
from readers.opening import open_dataset
from readers.protocols import Reader, Source, read_many
from readers.sample import Sample

__all__ = [
    "CorruptDatasetError",
    "Dataset",
    "DatasetNotFoundError",
    "FormatError",
    "ImageTransform",
    "MonitoredLoader",
    "PackError",
    "Reader",
    "Sample",
    "SampleError",
    "Source",
    "UnsupportedVersionError",
    "open_dataset",
    "read_many",
]
