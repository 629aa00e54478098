"""Brings in the kernel that rewrites JPEGs, the only part that needs numba, when it is needed."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from readers.errors import MissingDependencyError
from readers.header import Encoded


class Recoded(Protocol):
    """A rewritten JPEG, see `packer.recode.recode.Recoded`."""

    @property
    def jpeg(self) -> bytes:
        """The file."""

    @property
    def segments(self) -> NDArray[np.uint16]:
        """Length of each restart segment."""


class Recode(Protocol):
    """Rewrites a JPEG, see `packer.recode.recode.recode`."""

    def __call__(
        self, jpeg: Encoded, /, *, max_pixels: int | None, metadata: bool = True
    ) -> Recoded:
        """Rewrites one."""


@cache
def load_recode() -> Recode:
    """Loads and compiles the kernel; the first call on a machine takes some ten seconds.

    Raises:
        MissingDependencyError: numba isn't installed, or doesn't fit the other packages.
    """
    try:
        return cast("Recode", importlib.import_module("packer.recode.recode").recode)
    except ImportError as error:
        raise MissingDependencyError(
            f"--image region needs numba ({error}): pip install 'dataset-packer[region]'"
        ) from error
