"""`packer monitor report`, `trace`, `serve`: what was measured, for other tools."""

from __future__ import annotations

import importlib
import json
import time
from pathlib import Path
from types import ModuleType

import click

from packer.commands.parameters import as_json, place
from packer.commands.recordings import load
from readers.errors import MissingDependencyError
from readers.monitor.html_report import write_html_report
from readers.monitor.trace import write_trace

_PORT = 9810

output = click.option("--output", "-o", type=place, required=True, help="The file to write.")


@click.command()
@click.argument("run", type=place)
@output
@click.option("--title", help="Heading of the report  [the name of RUN]")
@as_json
def report(run: Path, *, output: Path, title: str | None, as_json: bool) -> None:
    """Write what was measured in RUN as one HTML file with plots."""
    write_html_report(load(run), output, title=title or run.name)
    _tell(output, as_json=as_json)


@click.command()
@click.argument("run", type=place)
@output
@as_json
def trace(run: Path, *, output: Path, as_json: bool) -> None:
    """Write a timeline of RUN that ui.perfetto.dev and chrome://tracing open."""
    write_trace(load(run), output)
    _tell(output, as_json=as_json)


@click.command()
@click.argument("run", type=place)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on: this machine's."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    help="0 for any that is free.",
)
@click.option("--textfile", type=place, help="Write the metrics to this file instead, and end.")
@as_json
def serve(run: Path, *, host: str, port: int, textfile: Path | None, as_json: bool) -> None:
    """Answer Prometheus for RUN until interrupted."""
    module = _prometheus()
    metrics = module.LoaderMetrics(lambda: load(run), loader=run.name)
    if textfile is not None:
        module.write_metrics(metrics, textfile)
        _tell(textfile, as_json=as_json)
        return
    with module.MetricsServer(metrics, host=host, port=port) as server:
        click.echo(json.dumps({"url": server.url}) if as_json else server.url)
        while True:
            time.sleep(3600)


def _prometheus() -> ModuleType:
    try:
        return importlib.import_module("readers.monitor.prometheus")
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        raise MissingDependencyError(
            "metrics need prometheus_client: pip install 'dataset-packer[monitor]'"
        ) from error


def _tell(path: Path, *, as_json: bool) -> None:
    click.echo(json.dumps({"written": str(path)}) if as_json else f"wrote {path}")
