"""Names of samples, where a reader of ours tells them."""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

from readers.dataset import Dataset
from readers.monitor.kinds import is_a
from readers.monitor.proxy import unwrapped

_DEEPEST = 8
_SUBSETS = (("torch.utils.data", "Subset"), ("paddle.io", "Subset"))


def key_of(dataset: Any, index: SupportsIndex) -> str:  # noqa: ANN401 - any dataset
    """Gives the key of a sample.

    Args:
        dataset: A dataset of ours, also in an adapter of ours or in a `Subset`.
        index: What that is asked for.

    Returns:
        Empty where nobody knows.
    """
    for _ in range(_DEEPEST):
        dataset = unwrapped(dataset)
        if isinstance(dataset, Dataset):
            return dataset.index.key(operator.index(index) % len(dataset))
        if any(is_a(dataset, *subset) for subset in _SUBSETS):
            index = dataset.indices[index]
        elif not is_a(dataset, "readers", "MapDataset"):
            break
        dataset = dataset.dataset
    return ""
