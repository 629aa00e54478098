"""What happens on the disk before and after a turn, outside of the clock."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def flush() -> None:
    """Waits until nothing is left to be written back, so that no turn pays for another."""
    os.sync()


def remove(output: Path) -> None:
    """Removes what a turn wrote, a file or a folder, if it wrote anything."""
    if output.is_dir():
        shutil.rmtree(output)
    else:
        output.unlink(missing_ok=True)
