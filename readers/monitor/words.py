"""How records of the monitor become the words of a ring, and come back."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, TypeAlias

from readers.monitor.record import BatchRecord, StepRecord

BATCHES: Final = 1
STEPS: Final = 2

BATCH_WIDTH: Final = 16
STEP_WIDTH: Final = 9
epoch_of: Final = struct.Struct(f"=8xq{8 * (BATCH_WIDTH - 2)}x").unpack
"""Gives of a batch's record its epoch, in a tuple."""

Words: TypeAlias = Sequence[int]


def words_of(record: bytes) -> Words:
    """Makes words of a record of a ring."""
    return memoryview(record).cast("q").tolist()


def step_record(words: Words) -> StepRecord:
    """Makes a step of its words."""
    step, epoch, batch, began, wait, compute, samples, ready, shared_memory_free = words
    return StepRecord(
        step=step,
        epoch=epoch,
        batch=batch,
        began=began,
        wait=wait,
        compute=compute,
        samples=samples,
        ready=ready,
        shared_memory_free=shared_memory_free,
    )


def batch_record(words: Words, *, worker: int, pid: int, thread: int) -> BatchRecord:
    """Makes a batch of its words and of what the head of its ring says."""
    (
        batch,
        epoch,
        sequence,
        samples,
        began,
        dataset,
        read,
        decode,
        transform,
        collate,
        cpu,
        queued,
        read_calls_bytes,
        storage_bytes,
        major_faults,
        nbytes,
    ) = words
    return BatchRecord(
        batch=batch,
        epoch=epoch,
        worker=worker,
        pid=pid,
        thread=thread,
        sequence=sequence,
        samples=samples,
        began=began,
        dataset=dataset,
        read=read,
        decode=decode,
        transform=transform,
        collate=collate,
        cpu=cpu,
        queued=queued,
        read_calls_bytes=read_calls_bytes,
        storage_bytes=storage_bytes,
        major_faults=major_faults,
        nbytes=nbytes,
    )
