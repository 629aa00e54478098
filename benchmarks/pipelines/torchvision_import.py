"""Imports torchvision, also beside a PyTorch that its compiled part wasn't built for.

That part (`torchvision._C`: box operators, image decoders) fails to load there, and the import
ends with "operator torchvision::nms does not exist", because torchvision describes its operators
to the compiler with `torch.library.register_fake`. The transforms are Python and need none of it,
so registering is left out during the import. Where everything fits, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _register_nothing(*_: object, **__: object) -> Callable[[Any], Any]:
    return lambda function: function


try:
    import torchvision
except RuntimeError:
    _real = torch.library.register_fake
    torch.library.register_fake = _register_nothing
    try:
        import torchvision
    finally:
        torch.library.register_fake = _real

from torchvision import datasets  # noqa: E402 - only now can it be imported
from torchvision.transforms import v2  # noqa: E402

__all__ = ["datasets", "torchvision", "v2"]
