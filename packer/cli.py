"""The `packer` command."""

from __future__ import annotations

import io
import signal
import sys
from importlib import import_module
from types import FrameType
from typing import NoReturn

import click

from readers.errors import OptionError, PackError, UnknownFormatError
from readers.version import __version__

_FAILED, _USAGE = 1, 2
_SECONDS_BETWEEN_REMINDERS = 0.3


class _Commands(click.Group):
    """Imports a command when it is asked for: some need much that the others do without."""

    def list_commands(self, _context: click.Context) -> list[str]:
        return ["bench", "convert", "doctor", "formats", "inspect", "monitor", "verify"]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(context):
            return None
        command: click.Command = getattr(import_module(f"packer.commands.{name}"), name)
        return command


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="packer")
def packer() -> None:
    """Packs images into datasets that training reads fast, and proves them whole."""


def main() -> None:
    """Runs the command.

    Exit status: 0 done, 1 the data or the run failed, 2 wrong usage, 130 and 143 interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names need not be UTF-8
    interruption = _Interruption()
    try:
        status = packer(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        status = interruption.end()
    except Exception as error:  # a library may have made an error of its own of an interruption
        if interruption.came:
            status = interruption.end()
        elif isinstance(error, PackError | OSError):
            click.echo(f"packer: {error}", err=True)
            status = _USAGE if isinstance(error, OptionError | UnknownFormatError) else _FAILED
        else:
            raise
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.exit(status)


class _Interruption:
    """Ends the run on SIGINT and SIGTERM.

    Python swallows an exception that a handler raises within a destructor, so it is raised again
    until the run has come to an end.

    Attributes:
        came: Whether a signal did.
    """

    def __init__(self) -> None:
        self.came = False
        self._number = signal.SIGINT
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._interrupt)
        signal.signal(signal.SIGALRM, self._remind)

    def end(self) -> int:
        """Stops the reminders and gives the exit status."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        how = "terminated" if self._number == signal.SIGTERM else "interrupted"
        click.echo(f"packer: {how}; run the same command again to go on", err=True)
        return 128 + self._number

    def _interrupt(self, number: int, _frame: FrameType | None) -> NoReturn:
        self.came = True
        self._number = signal.Signals(number)
        signal.setitimer(signal.ITIMER_REAL, _SECONDS_BETWEEN_REMINDERS, _SECONDS_BETWEEN_REMINDERS)
        raise KeyboardInterrupt

    def _remind(self, _number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt
