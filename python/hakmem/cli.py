"""The command line.  Commands are loaded when they are asked for: `hakmem --help` imports none of them."""

from __future__ import annotations

import importlib

import click

from hakmem import __version__
from hakmem.base.errors import HakmemError

# Name → what it does.  Each lives in commands/NAME.py as the click command `command`.
COMMANDS = {
    "run": "Launch a program on hakmem.",
    "ps": "Which processes run on hakmem, which on what else.",
    "stat": "One snapshot of a process.",
    "top": "Live view, of one process or of all.",
    "why": "Why is RSS this high? Lines that add up to it.",
    "record": "Snapshots over a time, into a file.",
    "report": "Make a page with charts of a recording.",
    "export": "Metrics of all hakmem processes for Prometheus.",
    "doctor": "What on this machine, or in a program, is in hakmem's way.",
    "symbolize": "Name the functions and lines of a report's call stacks.",
    "core": "The snapshot of a program that died, out of its core dump.",
    "completion": "Print the completion script for a shell.",
}

EPILOG = """\b
Examples:
  hakmem run -- ./server --port 80     launch it on hakmem
  hakmem why $(pgrep server)           where is its memory, and what can be done?
  hakmem top                           all of hakmem's processes, live
  hakmem doctor -- ./server            would it work here?

\b
Exit status:
  0  success
  1  it failed, the program does not run on hakmem, or doctor found a problem
  2  wrong command line
  3  the kernel refuses access to the process
  4  no such process, or it ended while it was being read
  5  tool and library are of versions that do not understand each other
  128 + N  signal N ended it: 130 after Ctrl-C, 141 when a pipe's reader left
  `hakmem run` ends with the program's own status; 126 and 127 as in shells.
"""


class Told(click.ClickException):
    """A HakmemError as click ends with it: one sentence on standard error."""

    def __init__(self, error: HakmemError) -> None:
        super().__init__(str(error))
        self.exit_code = int(error.exit_code)

    def show(self, file: object = None) -> None:  # noqa: ARG002 - click's signature
        click.echo(f"hakmem: {self.message}", err=True)


class LazyGroup(click.Group):
    """Knows its commands by name and sentence; imports one when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"hakmem.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except HakmemError as error:
            raise Told(error) from None


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hakmem")
def main() -> None:
    """Shows, from outside and while it runs, where a program's memory is, and why.

    Nothing is changed, restarted or stopped: the tool reads the process's memory as the kernel allows it.
    """
