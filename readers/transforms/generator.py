"""Random numbers for functions of the user's."""

from __future__ import annotations

import numpy as np

from readers.draws import current_draws


def sample_generator() -> np.random.Generator:
    """Gives random numbers that belong to the sample that this thread transforms.

    To be called within a transform, for each sample anew. Within a loader or a framework's dataset
    of this package they depend on its seed, the epoch, the sample, and how many times the transform
    has called this for it before; elsewhere on Python's `random`.
    """
    return current_draws().generator()
