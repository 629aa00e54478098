"""The kinds of arrays that batches come as."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from readers.errors import MissingDependencyError, OptionError

OutputName = Literal["numpy", "torch", "paddle"]

_FRAMEWORKS = {"torch": "readers.torch", "paddle": "readers.paddle"}
"""Adapters that have a `TensorOutput`."""


class Output(Protocol):
    """Makes memory for the arrays of a batch, and what the user gets of them."""

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any], /) -> NDArray[Any]:
        """Gives an array to be filled; it belongs to one batch for ever."""

    def deliver(self, array: NDArray[Any], /) -> object:
        """Gives a filled array in the user's kind, sharing its memory where that is possible."""


class NumpyOutput:
    """Arrays as they are."""

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any], /) -> NDArray[Any]:
        """Gives an array to be filled."""
        return np.empty(shape, dtype)

    def deliver(self, array: NDArray[Any], /) -> object:
        """Gives the array itself."""
        return array


def pins(*, wanted: bool, device: bool) -> bool:
    """Tells whether memory is page-locked, and warns if that is wanted and can't be had."""
    if wanted and not device:
        warnings.warn(
            "pin_memory has no effect: the framework sees no CUDA device here", stacklevel=5
        )
    return wanted and device


def make_output(name: OutputName, *, pin_memory: bool) -> Output:
    """Makes the output of that name.

    Args:
        name: `numpy`, `torch` or `paddle`.
        pin_memory: Whether tensors lie in page-locked memory, from which copies to the device run
            in the background. Without a device there is no such memory: a warning says so, and
            tensors lie in ordinary memory.

    Raises:
        OptionError: There is no such output, or pinned memory is asked of NumPy.
        MissingDependencyError: The framework isn't installed.
    """
    if name == "numpy":
        if pin_memory:
            raise OptionError("pin_memory needs the output 'torch' or 'paddle'")
        return NumpyOutput()
    if name not in _FRAMEWORKS:
        raise OptionError(f"output {name!r} is none of numpy, {', '.join(_FRAMEWORKS)}")
    try:
        adapter = import_module(_FRAMEWORKS[name])
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"output {name!r} needs {error.name} installed") from error
    output: Output = adapter.TensorOutput(pin_memory=pin_memory)
    return output
