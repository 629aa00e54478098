"""The monitor's switch: environment variables, read when a loader is made.

`PACKER_DATA_MONITOR` and `PACKER_DATA_MONITOR_FREQUENCY`, else `MGE_DATA_MONITOR` and
`MGE_DATA_MONITOR_FREQUENCY` as users of MegEngine know them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"", "0", "false", "no", "off"})
_NAMES = ("PACKER_DATA_MONITOR", "MGE_DATA_MONITOR")


@dataclass(frozen=True, slots=True)
class Switch:
    """What the variables say."""

    on: bool
    every: int
    """A line of the log for so many batches of a worker."""


def read_switch(environment: Mapping[str, str] | None = None) -> Switch:
    """Reads the variables; what makes no sense gives a warning and counts as not set.

    Args:
        environment: None for that of the process, as it is now.
    """
    variables = os.environ if environment is None else environment
    on = [said for name in _NAMES if (said := _on(variables, name)) is not None]
    every = [count for name in _NAMES if (count := _every(variables, name)) is not None]
    return Switch((*on, False)[0], (*every, 1)[0])


def _on(variables: Mapping[str, str], name: str) -> bool | None:
    text = variables.get(name)
    if text is None:
        return None
    said = text.strip().lower()
    if said in _ON | _OFF:
        return said in _ON
    _warn(f"{name}={text!r} says neither on (1, true, yes, on) nor off (0, false, no, off)")
    return None


def _every(variables: Mapping[str, str], prefix: str) -> int | None:
    name = f"{prefix}_FREQUENCY"
    text = variables.get(name)
    if text is None:
        return None
    if text.strip().isascii() and text.strip().isdigit() and (every := int(text[:18])) > 0:
        return every
    _warn(f"{name}={text!r} is no positive number of batches")
    return None


def _warn(what: str) -> None:
    warnings.warn(f"{what}; it is ignored", RuntimeWarning, stacklevel=4)
