"""Parts of a recording: one epoch, or the last batches."""

from __future__ import annotations

from dataclasses import replace

from readers.monitor.recording import Recording


def of_epoch(recording: Recording, epoch: int) -> Recording:
    """Gives the batches and steps of one epoch, the rest as it is."""
    return replace(
        recording,
        batches=[record for record in recording.batches if record.epoch == epoch],
        steps=[record for record in recording.steps if record.epoch == epoch],
    )


def last(recording: Recording, batches: int) -> Recording:
    """Gives the batches made last and the steps taken last, so many of each, the rest as it is."""
    return replace(
        recording, batches=recording.batches[-batches:], steps=recording.steps[-batches:]
    )


def epochs_of(recording: Recording) -> list[int]:
    """Lists the epochs that a recording holds anything of."""
    made = {record.epoch for record in recording.batches}
    return sorted(made | {record.epoch for record in recording.steps})
