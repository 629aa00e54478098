"""What a dataset is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeIs

from readers.yuv import Yuv420

Pixels: TypeAlias = NDArray[np.uint8]
Image: TypeAlias = bytes | memoryview | Pixels | Yuv420
JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"


def is_encoded(image: Image) -> TypeIs[bytes | memoryview]:
    """Says whether an image is a file's bytes rather than pixels."""
    return isinstance(image, bytes | memoryview)


def bytes_of(image: Image) -> bytes | memoryview:
    """Gives the bytes of an image as they are stored."""
    if isinstance(image, Yuv420):
        return image.data.data
    return np.ascontiguousarray(image).data.cast("B") if isinstance(image, np.ndarray) else image


def as_rgb(image: Image) -> bytes | memoryview | Pixels:
    """Makes RGB of planes; anything else stays what it is.

    Raises:
        MissingDependencyError: OpenCV isn't installed.
    """
    return image.to_rgb() if isinstance(image, Yuv420) else image


class Sample(NamedTuple):
    """One image with what is known about it."""

    key: str
    """Names the sample within its dataset: the source path without its suffix."""
    image: Image
    """An encoded image (`bytes`; `memoryview` from a reader opened with `copy=False`), or the
    pixels of a decoded dataset: `uint8`, shape (height, width, 3), RGB, or planes."""
    label: int | None
    """Position in the dataset's `classes`; None in a dataset without labels."""
    extra: Mapping[str, JsonValue]
    """Further fields by name."""
    path: str
    """Path relative to the source that was packed, as the file system had it (bytes that are
    no UTF-8 as lone surrogates, see `os.fsdecode`)."""
    segments: NDArray[np.uint16] | None = None
    """Lengths in bytes, restart marker included, of the restart segments of a JPEG that was packed
    with `--image region`, in order; None for every other image. See `readers.region`."""
