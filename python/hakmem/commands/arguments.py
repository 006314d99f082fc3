"""Arguments and options shared by several commands."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hakmem.base.durations import parse_duration_s
from hakmem.base.sizes import parse_bytes
from hakmem.base.streams import HARMLESS
from hakmem.target.target import Target, open_core, open_process

if TYPE_CHECKING:
    from hakmem.target.switch import Settings

PID = re.compile("[0-9]{1,19}")
TRACE = ".hkt"  # ends the name of a recording of all events
Command = Callable[..., Any]
Kind = TypeVar("Kind")


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


class Parsed(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has none
    """A word, parsed by a function; its ValueError is a sentence for the user."""

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Called by click, with a default, too, which may need no parsing."""
        try:
            return self.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


def parse_pid(word: str) -> int:
    if not PID.fullmatch(word) or not int(word):
        raise ValueError(f"{word!r} is not a PID; `hakmem ps` lists them, pgrep -o NAME tells one")
    return int(word)


def parse_period(word: str) -> Settings:
    """Bytes, or a percentage."""
    from hakmem.target.switch import Settings

    if not word.endswith("%"):
        return Settings(period_bytes=parse_bytes(word))
    percent = word[:-1]
    if not percent.isdecimal() or not 1 <= int(percent) <= 100:
        raise ValueError(f"{word!r} is not a share of processor time; it must be from 1% to 100%")
    return Settings(cost_percent=int(percent))


def duration(min_s: float = 0.001) -> Parsed:
    """At least `min_s` seconds."""
    return Parsed("duration", functools.partial(parse_duration_s, min_s=min_s))


def size(least: int) -> Parsed:
    """At least that many bytes."""
    return Parsed("size", functools.partial(parse_bytes, least=least))


# ---- the command line as one object ------------------------------------------------------------------


@dataclass(frozen=True)
class Declared:
    """An argument or options, in place of the default of the parameter or field whose value it becomes."""

    of: Callable[..., Callable[[Command], Command]]
    words: tuple[str, ...]
    settings: dict[str, Any]

    def added(self, command: Command, name: str, annotation: str) -> Command:
        """`bool` is a flag, `tuple[…, ...]` may be given several times; --help shows defaults. Where is_flag
        is False, not None, the value may be missing."""
        settings = self.settings
        if self.of is click.option:
            guessed = {"is_flag": annotation == "bool" or None, "multiple": annotation.endswith("...]")}
            numbers = {"metavar": "N"} if annotation.startswith("int") else {}
            settings = {"show_default": "default" in settings, **guessed, **numbers, **settings}
        return self.of(*self.words, name, **settings)(command)


def option(*words: str, **settings: Any) -> Any:  # noqa: ANN401 - of any type
    return Declared(click.option, words, settings)


def argument(**settings: Any) -> Any:  # noqa: ANN401 - of any type
    return Declared(click.argument, (), settings)


def options(command: Command, source: Command | None = None) -> Command:
    """The parameters of the command, or of `source`, are its arguments and options: each is Declared."""
    for one in reversed([*inspect.signature(source or command).parameters.values()]):
        command = one.default.added(command, one.name, one.annotation)
    return command


def options_as(kind: type[Kind]) -> Callable[[Callable[[Kind], None]], Command]:
    """The command gets them as one object, whose fields they are."""

    def decorate(command: Callable[[Kind], None]) -> Command:
        @functools.wraps(command)
        def with_one(**values: Any) -> None:  # noqa: ANN401 - of many types
            command(kind(**values))

        return options(with_one, kind)

    return decorate


# ---- targets and files -------------------------------------------------------------------------------


def say(text: object) -> None:
    """On standard error: standard output is for the result, or the program's."""
    click.echo(f"hakmem: {text}".translate(HARMLESS), err=True)


def warn(what: str) -> None:
    say(f"warning: {what}")


def open_target(text: str, files: Sequence[Path] = ()) -> Target:
    """The process or core that an argument PID|CORE names; with a line on standard error where a core is
    truncated: figures are those of the rest."""
    if PID.fullmatch(text):
        return open_pid(int(text))
    if not os.path.isfile(text):
        raise click.BadParameter(
            f"{text!r} is neither a PID nor a core file; `hakmem ps` lists processes", param_hint="PID|CORE"
        )
    opened = open_core(Path(text), files)
    if opened.memory.truncation:
        warn(f"{opened.memory.truncation}; memory beyond its end is missing here")
    return opened


def open_pid(pid: int) -> Target:
    """The process, with a line on standard error where it has several hakmems: only one is looked at."""
    opened = open_process(pid)
    if others := opened.places[1:]:
        say(
            f"process {pid} has {1 + len(others)} hakmems; the one that has held most is read, in "
            f"{opened.places[0]}; hakmem doctor {pid} names all"
        )
    return opened


INPUT = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT = click.Path(dir_okay=False, path_type=Path)
OUTPUT_OR_DASH = click.Path(dir_okay=False, allow_dash=True, path_type=Path)

PROCESS_ID = Parsed("pid", parse_pid)
PROCESS = argument(type=PROCESS_ID, shell_complete=complete_pids)
TARGET = argument(metavar="PID|CORE", shell_complete=complete_pids)
INTERNALS = option(
    "--internals",
    help="Sites begin at malloc's caller, not at the program's own function: std::, libc, alloc:: …",
)
DEPTH = option("--depth", type=click.IntRange(1, 64), default=3, help="Frames of a site.")
SITES_MAX = option("--top", type=click.IntRange(1), default=20, help="Sites.")
PERIOD = option(
    "--period",
    type=Parsed("period", parse_period),
    metavar="BYTES|PERCENT%",
    help="Mean bytes between two samples, or sampling's limit in percent of the process's processor time.  "
    "[default: 5%]",
)
JSON = option("--json", help="Print JSON instead of tables.")
EVERY_FIGURE = option("--all", help="Also show zero counters, empty classes and all threads.")
EVERY_CONTENT = option("--all", help="Show all rows, however small.")
EXAMPLES = option("--examples", help="Show the beginning of a text of each kind. It may be secret.")
FILES = option(
    "--files",
    type=click.Path(exists=True, path_type=Path),
    help="A program or library, or a directory of them, if they have moved.",
)
