"""Records as columns: arrays of seconds or of counts, NaN where a value isn't known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from readers.monitor.record import UNKNOWN, BatchRecord, StepRecord

Floats = npt.NDArray[np.float64]

_NANOSECOND = 1e-9


def counts(records: Sequence[BatchRecord | StepRecord], name: str) -> Floats:
    """Gives one field of each record as it is."""
    values = np.array([getattr(record, name) for record in records], np.float64)
    values[values == UNKNOWN] = np.nan
    return values


def seconds(records: Sequence[BatchRecord | StepRecord], name: str) -> Floats:
    """Gives one field of each record, nanoseconds in the record, as seconds."""
    return counts(records, name) * _NANOSECOND


def mean_of_known(values: Floats) -> float | None:
    """Averages what is known; None where nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def share(part: Floats, whole: Floats) -> float | None:
    """Divides the sums, over the rows where both are known; None where there is nothing."""
    known = ~(np.isnan(part) | np.isnan(whole))
    total = float(whole[known].sum())
    return float(part[known].sum()) / total if total > 0 else None
