"""A packed dataset as a source."""

from __future__ import annotations

from collections.abc import Mapping

from packer.protocols import SourceReport
from readers.dataset import Dataset
from readers.manifest import Manifest
from readers.sample import Sample


class PackedSource:
    """The samples of a packed dataset, in its order."""

    kind = "dataset"

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        manifest = dataset.manifest
        self.classes: tuple[str, ...] = manifest.classes
        self.fields: Mapping[str, str] = manifest.fields
        self.pixels = manifest.pixels
        self.shape = manifest.shape
        self.color = manifest.color
        self.segments = manifest.segments is not None
        self.report = SourceReport(notes=manifest.not_packed)
        self.fingerprint = manifest.fingerprint

    @property
    def manifest(self) -> Manifest:
        """What the dataset says of itself."""
        return self._dataset.manifest

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int, /) -> Sample:
        """Reads a sample.

        Raises:
            CorruptDatasetError: The dataset is damaged there.
        """
        return self._dataset[index]

    def stamp(self, index: int, /) -> bytes:  # noqa: ARG002 - the images' checksums are in the index
        """Nothing: the fingerprint covers the images."""
        return b""

    def path(self, index: int, /) -> str:
        """Path of a sample in what the dataset was packed from."""
        return self._dataset.index.path(index)
