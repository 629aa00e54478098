"""What is measured of a loader: one record a batch in a worker, one a step in the main process.

All times are nanoseconds. Stamps are of `time.perf_counter_ns`, which on Linux is CLOCK_MONOTONIC,
so those of different processes of one machine compare directly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

UNKNOWN = -1

Part: TypeAlias = Literal["sample", "read"]
"""What was timed of a sample: all of it, or its reading from storage, as readers of ours tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRecord:
    """One batch, as the worker that made it saw it.

    `dataset`, `transform` and `collate` exclude each other and add up to the fetch.
    """

    batch: int
    """Number of the batch in its epoch; `UNKNOWN` where the framework doesn't tell."""
    epoch: int
    worker: int
    """Number of the worker; `UNKNOWN` in the main process."""
    pid: int
    thread: int
    """Native id of the thread."""
    sequence: int
    """Batches that this thread made before."""
    samples: int
    began: int
    """Stamp."""
    dataset: int
    """Reading samples, decoding included."""
    read: int
    """Part of `dataset` spent in reading from storage; `UNKNOWN` unless a reader of ours tells."""
    decode: int
    """Part of `dataset` spent in decoding; `UNKNOWN` unless a decoder of ours tells."""
    transform: int
    """The user's transform, where it can be told from the dataset."""
    collate: int
    cpu: int
    """On-CPU time of dataset and transform; `UNKNOWN` where the system doesn't tell."""
    queued: int
    """Time of dataset and transform spent waiting for a CPU; `UNKNOWN` likewise."""
    read_calls_bytes: int
    """Bytes that read calls gave (`rchar`); `UNKNOWN` likewise, and in most batches that take less
    than 20 ms. Memory maps don't count."""
    storage_bytes: int
    """Bytes that came from storage (`read_bytes`); `UNKNOWN` likewise; 0 on network mounts."""
    major_faults: int
    """Page faults that waited for storage; `UNKNOWN` likewise."""
    nbytes: int
    """Bytes of the batch; `UNKNOWN` where it holds other things than arrays."""

    @property
    def fetch(self) -> int:
        """Time from the first sample to the finished batch."""
        return self.dataset + self.transform + self.collate

    @property
    def ended(self) -> int:
        """Stamp of the finished batch."""
        return self.began + self.fetch

    @property
    def blocked(self) -> int:
        """Time of dataset and transform that was neither on nor waiting for a CPU."""
        if UNKNOWN in {self.cpu, self.queued}:
            return UNKNOWN
        return max(0, self.dataset + self.transform - self.cpu - self.queued)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step of the training loop, as the main process saw it."""

    step: int
    """Batches delivered in this epoch before."""
    epoch: int
    batch: int
    """Number of the batch that was delivered; `UNKNOWN` where it can't be told."""
    began: int
    """Stamp of when the loop asked for the batch."""
    wait: int
    """Time until it had the batch."""
    compute: int
    """Time from having the batch to asking for the next one; `UNKNOWN` for the last of an epoch."""
    samples: int
    ready: int
    """Batches that were finished and not delivered when the loop asked; `UNKNOWN` likewise."""
    shared_memory_free: int
    """Free bytes of /dev/shm; `UNKNOWN` where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """How a worker is: the last that was seen of it."""

    worker: int
    pid: int
    thread: int
    stage: str
    """`idle`, `dataset`, `transform` or `collate`."""
    since: int
    """Stamp of when it entered the stage."""
    seen: int
    """Stamp of when this state was looked at."""
    batches: int
    """Batches that it finished."""
    alive: bool
    died: bool
    """Whether it ended in the middle of a batch while the loop wanted more of its epoch; workers
    that a loader ends by itself didn't die."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """Memory of a process, taken every few seconds."""

    stamp: int
    worker: int
    pid: int
    unique: int
    """Bytes that no other process shares (USS)."""
    proportional: int
    """Bytes with shared ones divided by their sharers (PSS)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRecord:
    """One of the slowest samples."""

    index: int
    """What the dataset was asked for; its place in the worker's stream if it wasn't asked by index;
    `UNKNOWN` where that is no integer."""
    key: str
    """Its key where a reader of ours tells, else empty."""
    worker: int
    took: int
    """Time until it was read, decoded and transformed; without what the loader does for the batch
    as a whole."""
    read: int
    """Part of it spent in reading from storage; `UNKNOWN` unless a reader of ours tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRecord:
    """How many samples took from `begin` to twice as long."""

    part: Part
    begin: int
    """A power of two; 0 for all times under 2048."""
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderFacts:
    """What is known of the loader and the machine."""

    framework: str
    """`torch`, `paddle`, `megengine`, `readers` or `iterable`."""
    workers: int
    """0: the main process does the work."""
    threads: bool
    """Whether workers are threads."""
    batch_size: int
    """`UNKNOWN` where batches come by another rule."""
    prefetch: int
    """Batches that each worker makes ahead; `UNKNOWN` where the framework has none."""
    in_order: bool
    persistent: bool
    length: int
    """Batches of an epoch; `UNKNOWN` for streams."""
    cores: int
    """Cores that this process may use."""
    storage: str
    """Type of the dataset's file system, such as `ext4` or `nfs`; empty if unknown."""
    format: str
    """Format of our dataset; empty for others."""
    dataset: str
    """Path of our dataset, or what another has as its `root`; empty if unknown."""
    pixels: bool
    """Whether our dataset holds pixels."""
