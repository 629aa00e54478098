"""How the kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(signature: str) -> Callable[[Kernel], Kernel]:
    """Compiles a kernel for one signature when its module is loaded, before any thread runs it.

    It lets go of the interpreter's lock and is cached on disk, where a cache can be written: a
    read-only installation without a home directory compiles anew in every process. The cache knows
    a kernel by its own file: who edits one that others call removes the cache of those, too
    (`find packer/recode -name '*.nb?' -delete`).

    `NUMBA_BOUNDSCHECK=1` makes an access out of bounds an `IndexError`; give it a `NUMBA_CACHE_DIR`
    of its own, since the cache doesn't tell the two apart.
    """

    def compile_kernel(kernel: Kernel) -> Kernel:
        try:
            made = numba.njit(signature, nogil=True, cache=True)(kernel)
        except Exception:  # noqa: BLE001 - a cache that can't be read or written is done without
            made = numba.njit(signature, nogil=True)(kernel)
        return cast("Kernel", made)

    return compile_kernel
