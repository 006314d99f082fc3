"""Arguments and options shared by several commands."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from hakmem.target.target import Target

PID = re.compile("[0-9]{1,19}")
Command = TypeVar("Command", bound=Callable[..., Any])
Asked = TypeVar("Asked")  # a dataclass


def complete_pids(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """PIDs with program names, for shells that show both."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and name.startswith(incomplete):
            try:
                comm = Path("/proc", name, "comm").read_text(errors="replace")
            except OSError:
                continue
            found.append(CompletionItem(name, help=comm.strip()))
    return found


class Pid(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has none
    """The number of a process."""

    name = "pid"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Called by click."""
        if isinstance(value, int):
            return value
        if not PID.fullmatch(value) or not int(value):
            self.fail(f"{value!r} is not a PID; `hakmem ps` lists them, pgrep -o NAME tells one", param, ctx)
        return int(value)


def pid_argument(command: Command) -> Command:
    """PID of the process to read."""
    return click.argument("pid", type=Pid(), shell_complete=complete_pids)(command)


def one_of(name: str, flags: Mapping[str, str]) -> Callable[[Command], Command]:
    """A flag for each, with its help; the command gets the one that was given as `name`, or None.  Two of
    them are an error: the last one would win silently."""

    def choose(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if not value:
            return
        flag = str(parameter.name)
        earlier = context.meta.setdefault(name, flag)
        if earlier != flag:
            raise click.UsageError(f"--{earlier} and --{flag} exclude each other; use one of them", context)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_choice(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the command's own
            return command(*arguments, **options, **{name: click.get_current_context().meta.get(name)})

        found: Any = with_choice
        for flag, text in reversed([*flags.items()]):
            found = click.option(f"--{flag}", is_flag=True, expose_value=False, callback=choose, help=text)(
                found
            )
        return cast("Command", found)

    return decorate


def options_as(kind: type[Asked]) -> Callable[[Callable[[Asked], None]], Callable[..., None]]:
    """The command gets its arguments and options as one object, whose fields have their names."""

    def decorate(command: Callable[[Asked], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_options(**values: Any) -> None:  # noqa: ANN401 - of many types
            command(kind(**values))

        return with_options

    return decorate


def warn(what: str) -> None:
    click.echo(f"hakmem: warning: {what}", err=True)


def open_target(text: str, executable: Path | None = None, libraries: Sequence[Path] = ()) -> Target:
    """The process or core that an argument PID|CORE names."""
    if PID.fullmatch(text):
        return open_pid(int(text))
    if Path(text).is_file():
        return open_core_file(Path(text), executable, libraries)
    raise click.BadParameter(
        f"{text!r} is neither a PID nor a core file; `hakmem ps` lists processes", param_hint="PID|CORE"
    )


def open_core_file(path: Path, executable: Path | None, libraries: Sequence[Path]) -> Target:
    """The core, with a line on standard error where it is truncated: figures are those of the rest."""
    from hakmem.target.target import open_core

    opened = open_core(path, executable, libraries)
    if opened.memory.truncation:
        warn(f"{opened.memory.truncation}; memory beyond its end is missing here")
    return opened


def open_pid(pid: int) -> Target:
    """The process, with a line on standard error where it has several hakmems: only one is looked at."""
    from hakmem.target.target import open_process

    opened = open_process(pid)
    if others := opened.places[1:]:
        click.echo(
            f"hakmem: process {pid} has {1 + len(others)} hakmems; the one that has held most is read, in "
            f"{opened.places[0]}; hakmem doctor {pid} names all",
            err=True,
        )
    return opened


def moved_files(executable: Path | None, libraries: Sequence[Path]) -> tuple[Path, ...]:
    """What --executable and --library name, for those that look for a program's files."""
    return (*([executable] if executable else ()), *libraries)


TARGET = click.argument("target", metavar="PID|CORE", shell_complete=complete_pids)
INTERNALS = click.option(
    "--internals",
    "with_internals",
    is_flag=True,
    help="Sites begin at malloc's caller, not at the program's own function: std::, libc, alloc:: …",
)
DEPTH = click.option(
    "--depth", type=click.IntRange(1, 64), metavar="N", default=3, show_default=True, help="Frames of a site."
)
SITES_MAX = click.option(
    "--top", "rows_max", type=click.IntRange(1), metavar="N", default=20, show_default=True, help="Sites."
)
PERIOD = click.option(
    "--period", "period_bytes", type=click.IntRange(1), metavar="BYTES",
    help="Mean bytes between two samples; adapted if not given.",
)  # fmt: skip
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
EVERY_FIGURE = click.option(
    "--all", "everything", is_flag=True, help="Also show zero counters, empty classes and all threads."
)
EVERY_CONTENT = click.option("--all", "everything", is_flag=True, help="Show all rows, however small.")
EXAMPLES = click.option(
    "--examples", is_flag=True, help="Show the beginning of a text of each kind. It may be secret."
)
EXECUTABLE = click.option(
    "--executable", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The program file, if it has moved.",
)  # fmt: skip
LIBRARIES = click.option(
    "--library", "libraries", multiple=True, type=click.Path(exists=True, path_type=Path),
    help="A library of the program, or a directory of libraries, if they have moved.",
)  # fmt: skip
