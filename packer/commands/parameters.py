"""Parameter types of the command line, and the options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


class ByteSize(click.ParamType[int]):
    """A number of bytes, such as 500MB, 2GiB or 1048576."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Parses it."""
        match = _SIZE.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no size; write it like 500MB or 2GiB", param, ctx)
        number, unit, binary = match.groups()
        factor: int = (1024 if binary else 1000) ** _POWER[unit.lower()]
        return round(float(number) * factor)


class PictureSize(click.ParamType["tuple[int, int]"]):
    """Height and width in pixels: 224, or 240x320."""

    name = "pixels"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Parses it."""
        if isinstance(value, tuple):
            return value
        parts = str(value).lower().split("x")
        if len(parts) > 2 or not all(part.isdigit() for part in parts):  # noqa: PLR2004
            self.fail(f"{value!r} is no size; write it like 224 or 240x320", param, ctx)
        return int(parts[0]), int(parts[-1])


existing = click.Path(exists=True, path_type=Path)
place = click.Path(path_type=Path)

as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
quiet = click.option("--quiet", "-q", is_flag=True, help="No progress and no remarks on stderr.")
workers = click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=0,
    help="Threads that read and prepare; 0 chooses by the number of cores.",
)


def list_options(command: Command) -> Command:
    """Adds the options that say how a list of images is to be read."""
    for option in (
        click.option("--label-column", help="Column of a list that holds the labels."),
        click.option("--path-column", help="Column of a list that holds the paths."),
        click.option(
            "--root", type=existing, help="Folder that the paths of a list start from  [its own]"
        ),
    ):
        command = option(command)
    return command
