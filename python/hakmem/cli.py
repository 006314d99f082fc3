"""The command line.  Commands are imported on use: `hakmem --help` imports none of them."""

from __future__ import annotations

import difflib
import importlib
import re

import click

from hakmem import __version__

# Name → what it does.  Each lives in commands/NAME.py as the click command `command`.
COMMANDS = {
    "run": "Launch a program on hakmem.",
    "ps": "List processes by allocator: hakmem, glibc, jemalloc …",
    "stat": "Print one snapshot of a process or of a core dump.",
    "top": "Watch one process, or choose among all, live.",
    "why": "Explain RSS in lines that add up to it.",
    "profile": "Show which call sites hold the memory of a running process.",
    "purge": "Ask a process to give free memory back.",
    "what": "Tell what live blocks contain: classes, types, text, pointers …",
    "leaks": "Find sites that leak, and unreachable blocks.",
    "trace": "Record every allocation and free of a running process.",
    "replay": "Replay a trace on several mallocs, or with hakmem's settings.",
    "record": "Record snapshots at an interval, as a page with charts.",
    "export": "Export metrics of all hakmem processes for Prometheus.",
    "doctor": "Check a machine, a process or a program for obstacles to hakmem.",
    "symbolize": "Resolve the call stacks of a report to functions and lines.",
}

ANSWER = "The first answer about any process: its malloc, its memory, its leaks."
# A former command, or option → its successor.
REPLACED = {
    "completion": "--completion SHELL",
    "core": "stat CORE",
    "diff": "profile AFTER --against BEFORE",
    "library": "run --library",
    "report": "record RECORDING -o FILE.html",
    "tune": "replay FILE --with settings",
    "symbolize --executable": "symbolize --files",
    "symbolize --library": "symbolize --files",
    "symbolize -o": "profile FILE -o FILE",
    "export --classes": "export --detail classes",
    "export --heaps": "export --each",
    "export --listen": "export HOST:PORT",
    "export --otlp": "export HOST:PORT",
    "export --quick": "export --detail counters",
    "export --sites": "export --each",
    "export --textfile": "export FILE",
    "leaks --cost": "leaks --period PERCENT%",
    "leaks --no-profile": "leaks --for 0s",
    "profile --age": "leaks",
    "profile --allocated": "profile --of allocated",
    "profile --cost": "profile --period PERCENT%",
    "profile --live": "profile --of live",
    "profile --new": "profile --of new",
    "profile --peak": "profile --of peak",
    "profile --rate": "profile --period PERCENT%",
    "profile --rounding": "profile --json: rounding_bytes",
    "purge --wait": "purge --for",
    "replay --settings": "replay --with settings",
    "replay --within": "replay --for",
    "run --allocated": "run --of allocated",
    "run --json": "run --env HAKMEM_STATS=json:FILE",
    "run --stats": "run --env HAKMEM_STATS=1",
    "run --trace": "run -o FILE.hkt",
    "top --interval": "top --every",
    "top --once": "top PID | cat",
    "trace record": "trace PID",
    "trace show": "trace FILE",
}

EPILOG = """\b
Examples:
  hakmem 1234                          what is it, where is its memory, does it leak?
  hakmem run -- ./server --port 80     launch it on hakmem
  hakmem why $(pgrep server)           where is its memory?
  hakmem top                           choose a hakmem process, watch it live
  hakmem doctor -- ./server            would hakmem work here?
  eval "$(hakmem --completion bash)"   in ~/.bashrc

\b
Exit status:
  0  success
  1  failure: the program does not run on hakmem, or doctor found a problem
  2  invalid command line
  3  the kernel denies access to the process
  4  no such process, or it ended while it was being read
  5  the versions of tool and library do not match
  128 + N  killed by signal N: 130 after Ctrl-C, 141 when a pipe was closed
  `hakmem run` exits with the program's own status; 126 and 127 as in shells.
"""


MORE_NUMBERS = re.compile(r"unexpected extra arguments? \([0-9 ]+\)")


class LazyGroup(click.Group):
    """Knows its commands by name and sentence; imports one when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"hakmem.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A process, or a command; suggests the one that was probably meant."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            answer = importlib.import_module("hakmem.commands.answer")
            if pid := answer.process_named(args[0]):
                return args[0], answer.command, [pid, *args[1:]]
        for former in (args[0], " ".join(args[:2])):
            if former in REPLACED:
                raise click.UsageError(f"there is no {former}; use hakmem {REPLACED[former]}", ctx)
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0], COMMANDS, 1)
            hint = "; hakmem --help lists the commands"
            if close:
                hint = f"; did you mean {close[0]}?"
            elif not args[0].startswith("-"):
                hint = f", and no process has that name{hint}"
            raise click.UsageError(f"{error.message.rstrip('.')}{hint}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([("PID|NAME", ANSWER), *COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            successor = REPLACED.get(f"{error.ctx.info_name if error.ctx else ''} {error.option_name}")
            if successor is None:
                raise
            raise click.UsageError(
                f"there is no {error.option_name}; use hakmem {successor}", error.ctx
            ) from None
        except click.UsageError as error:  # $(pgrep NAME) may tell several
            if not MORE_NUMBERS.search(error.message):
                raise
            message = f"{error.message}; give one PID: pgrep -o NAME tells the oldest"
            raise click.UsageError(message, error.ctx) from None


def print_completion(context: click.Context, _parameter: click.Parameter, shell: str | None) -> None:
    from click.shell_completion import get_completion_class

    if shell is None or context.resilient_parsing:
        return
    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(context.command, {}, "hakmem", "_HAKMEM_COMPLETE").source())
    context.exit()


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hakmem")
@click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    is_eager=True,
    expose_value=False,
    callback=print_completion,
    help="Print the completion script for a shell, and exit.",
)
def main() -> None:
    """Shows, from outside and while it runs, where a program's memory is, and why.

    The process is not restarted: its memory is read, as far as the kernel permits. `profile` and `purge`
    write a few bytes into hakmem's own control record; only `leaks --freeze` stops it, for one scan.
    """
