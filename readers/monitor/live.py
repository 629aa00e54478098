"""A loader as it is now, in lines."""

from __future__ import annotations

from readers.monitor.amounts import byte_size, duration
from readers.monitor.record import UNKNOWN, WorkerState
from readers.monitor.recording import Recording
from readers.monitor.report import report_text


def live_text(recording: Recording) -> str:
    """Writes the verdict, the figures, and what each worker does at this moment."""
    memory = {taken.pid: taken.unique for taken in recording.memory}
    states = [_state_text(state, memory.get(state.pid)) for state in recording.workers]
    return "\n".join([report_text(recording), *states])


def _state_text(state: WorkerState, unique: int | None) -> str:
    name = "main" if state.worker == UNKNOWN else f"worker {state.worker}"
    doing = f"{state.stage} for {duration((state.seen - state.since) * 1e-9)}"
    parts = [
        f"{name:10} pid {state.pid:<8} {doing if state.alive else 'ended':24}",
        f"{state.batches:8,} batches",
    ]
    if unique is not None:
        parts.append(f"{byte_size(unique):>9} of its own")
    return " ".join(parts)
