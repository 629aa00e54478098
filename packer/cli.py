"""The `packer` command."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import click

from packer.commands.convert import convert
from packer.commands.formats import formats
from packer.commands.inspect import inspect
from packer.commands.verify import verify
from packer.version import __version__
from readers.errors import OptionError, PackError, UnknownFormatError

_FAILED, _USAGE = 1, 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="packer")
def packer() -> None:
    """Packs images into datasets that training reads fast, and proves them whole."""


for command in (convert, formats, inspect, verify):
    packer.add_command(command)


def main() -> None:
    """Runs the command.

    Exit status: 0 done, 1 the data or the run failed, 2 wrong usage, 130 and 143 interrupted.
    """
    signal.signal(signal.SIGTERM, _end)
    try:
        status = packer(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except PackError as error:
        click.echo(f"packer: {error}", err=True)
        status = _USAGE if isinstance(error, OptionError | UnknownFormatError) else _FAILED
    except OSError as error:
        click.echo(f"packer: {error}", err=True)
        status = _FAILED
    except (KeyboardInterrupt, click.Abort):
        click.echo("packer: interrupted; run the same command again to go on", err=True)
        status = 128 + signal.SIGINT
    sys.exit(status)


def _end(number: int, _frame: FrameType | None) -> None:
    click.echo("packer: terminated; run the same command again to go on", err=True)
    sys.exit(128 + number)
