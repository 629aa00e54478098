"""The folder of class folders, for pipelines whose library lists none."""

from __future__ import annotations

from pathlib import Path


def list_folder(root: str) -> list[tuple[str, int]]:
    """Gives path and label of every picture, classes and files in the order of their names."""
    return [
        (str(path), label)
        for label, folder in enumerate(sorted(Path(root).iterdir()))
        for path in sorted(folder.iterdir())
    ]
