"""`packer formats`: the formats, or one format's specification."""

from __future__ import annotations

import importlib
import inspect
import json
from dataclasses import asdict

import click

from packer.commands.parameters import as_json
from readers.registry import FORMATS, FormatEntry, format_entry


@click.command()
@click.argument("name", required=False)
@as_json
def formats(name: str | None, *, as_json: bool) -> None:
    """List the formats, or give the specification of one and how to read it without us."""
    if name is None:
        if as_json:
            click.echo(json.dumps([asdict(entry) for entry in FORMATS.values()], indent=1))
        else:
            for entry in FORMATS.values():
                click.echo(f"{entry.name:12}{_holds(entry):18}{entry.summary}")
        return
    entry = format_entry(name)
    specification = inspect.getdoc(importlib.import_module(entry.layout)) or ""
    if as_json:
        click.echo(json.dumps(asdict(entry) | {"specification": specification}, indent=1))
        return
    click.echo(f"{entry.name}, version {entry.version}: {entry.summary}\n")
    click.echo(f"{specification}\n\nWithout this library, where `shard` is the path of one:\n")
    click.echo("\n".join(f"    {line}" for line in entry.stock.splitlines()))


def _holds(entry: FormatEntry) -> str:
    held = {"files": entry.encoded, "pixels": entry.pixels}
    return " or ".join(name for name, holds in held.items() if holds)
