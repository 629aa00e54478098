"""The limits that the rules go by.

Sources: MLPerf Storage (an accelerator utilisation of 90 % passes), TensorFlow's profiler (5 and
20 % of the step), SageMaker Debugger (patience, outliers); the others from planted causes measured
for this project on 2 cores, Linux 6.18.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Limits; shares are of 1, times in seconds."""

    fine: float = 0.05
    """A smaller share of waiting is nothing to speak of (TensorFlow's profiler)."""
    noted: float = 0.10
    """From this share of waiting on causes are noted (MLPerf Storage); below it, alarms clear."""
    bound: float = 0.20
    """From this share of waiting on they are alarms (TensorFlow's profiler)."""
    raised: float = 0.20
    """Share of a window's batches that break a limit for an alarm."""
    cleared: float = 0.10
    """With a smaller share it is over."""
    patience: int = 30
    """Batches before anything is judged, at least; also twice what workers make ahead."""

    blocked: float = 0.40
    """Share of dataset and transform that is neither on a CPU nor waiting for one."""
    from_storage: float = 0.20
    """Share of the bytes read that came from storage, not from the page cache."""
    on_cpu: float = 0.70
    """Share of dataset and transform on the CPU or waiting for it, for decoding to be the cause."""
    transform: float = 0.50
    """Share of the fetch."""
    collate: float = 0.20
    """Share of the fetch."""
    queued: float = 0.15
    """Share of the fetch spent waiting for a CPU."""
    minor: float = 0.5
    """A cause that accounts for less than this share of the largest one's is left for later."""

    busy: float = 0.90
    """Workers that are busy for longer have no slack."""
    idle: float = 0.70
    """Workers that are busy for less wait for the main process."""
    cores_used: float = 0.80
    """Share of the cores in use, below which more workers find room."""
    handed: float = 0.50
    """Share of the waiting for batches that were finished already."""
    tail: float = 10.0
    """Ratio of the 99th percentile of the wait to the median."""
    slow_worker: float = 1.5
    """Ratio of the slowest worker's time a sample to that of the others."""
    slow_sample: float = 10.0
    """Ratio of a sample's time to the usual one."""

    memory_growth: float = 0.10
    """Growth of a process's own memory per 1000 batches."""
    memory_batches: int = 100
    """Batches between the first and the last look at it, at least."""
    memory_least: int = 8 << 20
    """Bytes of growth that are worth a word."""
    shared_memory: float = 0.80
    """Share of the shared memory that batches may take."""
    stuck: float = 30.0
    """Seconds in one stage, at least."""
    stuck_ratio: float = 20.0
    """Ratio of that time to the 99th percentile of the fetch, at least."""
    first_batch: float = 10.0
    """Ratio of the wait for an epoch's first batch to the median step."""
    paddle_poll: float = 0.45
    """Wait for a later epoch's first batch that shows Paddle's `time.sleep(0.5)`
    (`paddle/io/dataloader/dataloader_iter.py`, `_reset`, 3.3.1)."""

    headroom: float = 1.15
    """Workers beyond what the averages ask for: times vary."""
