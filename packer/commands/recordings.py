"""What the commands of the monitor read: a run, a recording, a log, or a folder of those."""

from __future__ import annotations

from pathlib import Path

from readers.errors import DatasetNotFoundError
from readers.monitor.log_parser import parse_log
from readers.monitor.record import LoaderFacts
from readers.monitor.recording import Recording, load_recording
from readers.monitor.run import read_run

_FACTS, _RECORDING = "facts.json", "recording.jsonl"


def load(path: Path) -> Recording:
    """Reads a run's directory, a recording's file or a log.

    Raises:
        DatasetNotFoundError: There is none.
        CorruptDatasetError: It is damaged.
        SourceError: No line of the log is the monitor's.
    """
    if path.is_dir():
        return read_run(path)
    if not path.exists():
        raise DatasetNotFoundError(
            f"{path} doesn't exist: give the directory of a run (`LoaderMonitor(run=…)`), its"
            f" {_RECORDING}, or a log",
            path=str(path),
        )
    with path.open(encoding="utf-8", errors="replace") as lines:
        first = next(lines, "")
        if first.startswith("{") and f'"kind": "{LoaderFacts.__name__}"' in first:
            return load_recording(path)
        lines.seek(0)
        return parse_log(lines)


def load_all(path: Path) -> list[Recording]:
    """Reads one, or every run, recording and log of a folder, in the order of their names.

    Raises:
        PackError: As `load` says.
    """
    if not path.is_dir() or any((path / name).exists() for name in (_FACTS, _RECORDING)):
        return [load(path)]
    inner = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    if not inner:
        raise DatasetNotFoundError(f"{path} holds no runs", path=str(path))
    return [load(entry) for entry in inner]


def goes_on(path: Path) -> bool:
    """Tells whether a path is a run that hasn't ended, as far as can be seen."""
    return path.is_dir() and not (path / _RECORDING).exists()
