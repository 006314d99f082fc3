"""hakmem run: launch a program on hakmem."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from hakmem.base.errors import DEBUG_VARIABLE, CommandError
from hakmem.base.files import replaceable
from hakmem.commands.arguments import OUTPUT, TRACE, Parsed, argument, option, options_as, say, size, warn

if TYPE_CHECKING:
    from hakmem.doctor.runtimes import Runtime
    from hakmem.launch.child import Child
    from hakmem.launch.condition import Condition
    from hakmem.launch.keepers import Listener
    from hakmem.launch.preload import Examined

HARDEN_VARIABLE = "HAKMEM_HARDEN"
HARDEN = "--harden"
PYTHON = "--python"
# Options whose value may be the next argument.
WITH_VALUE = ("--env", "--as", "-o", "--output", "--when", "--period", "--of")
PROFILE_VARIABLE = "HAKMEM_PROFILE"
PROFILE_ADVICE = "use --period 4096"


def _setting(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise click.BadParameter(f"{name!r} is not a setting; use NAME=VALUE")
    return {name: value for name, _, value in pairs}


def print_library(context: click.Context, _parameter: click.Parameter, is_asked: bool) -> None:
    from hakmem.launch.preloadable import is_preloadable
    from hakmem.target.library import find_library

    if not is_asked or context.resilient_parsing:
        return
    library = find_library()
    if not is_preloadable(library):
        warn(
            "LD_PRELOAD has no way to write the space, colon or dollar sign in this path; "
            "start programs by hakmem run, or install hakmem into another folder"
        )
    click.echo(library)
    context.exit()


def parse_when(word: str) -> Condition:
    """Its module is loaded when it is used."""
    from hakmem.launch.condition import parse_condition, usable_bytes

    return parse_condition(word, usable_bytes())


class Run(click.Command):
    """The level of --harden is attached to it, or 1: the next argument is the program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        number = 0
        while number < len(args) and args[number].startswith("-") and args[number] != "--":
            if args[number] == HARDEN:
                args[number] = f"{HARDEN}=1"
            number += 2 if args[number] in WITH_VALUE else 1
        return super().parse_args(ctx, args)


@dataclass(frozen=True)
class Asked:
    """The command line."""

    harden: int | None = option(
        HARDEN,
        type=click.IntRange(0, 2),
        metavar="[=LEVEL]",
        help="Hardened mode (docs/SAFETY.md), with bounds checks in C library functions; LEVEL is 1 or 2.",
    )
    is_python: bool = option(
        PYTHON, help="For CPython: each of its objects is a block of hakmem's (PYTHONMALLOC=malloc)."
    )
    as_name: str | None = option(
        "--as",
        type=click.Choice(["jemalloc"]),
        help="For programs that need libjemalloc.so.2: hakmem under this name.",
    )
    settings: dict[str, str] = option(
        "--env",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_setting,
        help="Set a variable for the program, such as an option of hakmem (docs/OPTIONS.md).",
    )
    is_profiled: bool = option(
        "--profile",
        help="Profile it from its first malloc on: -o, or tables on standard error.",
    )
    outputs: tuple[Path, ...] = option(
        "-o",
        "--output",
        type=OUTPUT,
        metavar="FILE",
        help="Profile it: write FILE (.pb.gz, .folded, .html or .json) at its end, and FILE with .peak when "
        "it held most; %p becomes the PID, files for each process. Or record every allocation and free, from "
        "its first malloc to its end, in FILE.hkt (hakmem trace FILE).",
    )
    conditions: tuple[Condition, ...] = option(
        "--when",
        type=Parsed("condition", parse_when),
        metavar="CONDITION",
        help="With --profile: also write FILE with .when as soon as rss>80% (of the memory it may use), "
        "rss>2G or live>500M.",
    )
    period_bytes: int | None = option(
        "--period",
        type=size(2),
        metavar="BYTES",
        help="With --profile: mean bytes between two samples; adapted if not given.",
    )
    mode: str = option(
        "--of",
        type=click.Choice(["live", "allocated"]),
        default="live",
        help="With --profile: live blocks, or all allocated ones, freed or not.",
    )
    library: bool = option(
        "--library",
        is_eager=True,
        callback=print_library,
        help="Only print the path of libhakmem.so, for LD_PRELOAD: $HAKMEM_LIBRARY, the one that came with "
        "this tool, or an installed one.",
    )
    words: tuple[str, ...] = argument(
        nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENT]…"
    )

    @property
    def trace(self) -> Path | None:
        return next((path for path in self.outputs if path.suffix == TRACE), None)


@click.command("run", cls=Run, context_settings={"allow_interspersed_args": False})
@options_as(Asked)
def command(asked: Asked) -> None:
    """Launch PROGRAM on hakmem.

    If the library cannot be preloaded into the program, the reason is printed and nothing is run. Otherwise
    the program replaces this process: signals and the exit status are its own.

    With --profile or -o the tool stays as the program's parent, forwards signals, and ends as the program
    did. The program's last state is read however it ends; after the OOM killer only the last reading is left.
    See docs/PROFILING.md.

    \b
    Examples:
      hakmem run -- ./server --port 80
      hakmem run --harden -- ./server --port 80
      hakmem run --python -o x.html -- python3 app.py
      hakmem run -o x.hkt -- ./server
      hakmem run -o x.pb.gz --when 'rss>80%' -- ./server
      hakmem run --as jemalloc -- redis-server
      hakmem run --env HAKMEM_STATS=json:/tmp/%p.json --env HAKMEM_DECAY_MS=100 -- make -j8
      LD_PRELOAD=$(hakmem run --library) gunicorn app:app

    \b
    Exit status: the program's; 126 if hakmem cannot be preloaded into it or it is not executable,
    127 if there is no such program.
    """
    from hakmem.launch.preload import examine
    from hakmem.target.library import find_library, find_program

    check(asked)
    watch = watcher(asked) if asked.is_profiled or asked.outputs else None
    library = find_program(f"lib{asked.as_name}.so.2") if asked.as_name else find_library()
    examined = examine(asked.words, library)
    complain(examined)
    environment = environment_of(asked, examined, library)
    if watch is None:
        launch(asked.words, environment)
    from hakmem.doctor.runtimes import hidden

    if unseen := hidden(runtime_named(examined), environment, examined.words):
        say(unseen)
    run_kept(
        partial(launch, asked.words, environment), environment, watch, "trace" if asked.trace else "profile"
    )


def check(asked: Asked) -> None:
    """Refuses options that exclude each other."""
    of_profiles = {
        "--profile": asked.is_profiled,
        "--when": asked.conditions,
        "--period": asked.period_bytes,
        "--of allocated": asked.mode != "live",
        "a second -o": asked.outputs[1:],
    }
    first = next((word for word, value in of_profiles.items() if value), None)
    if first and asked.trace:
        raise click.UsageError(f"{asked.trace} is for a trace, {first} for a profile: leave out one of them")
    if first and not (asked.is_profiled or asked.outputs):
        raise click.UsageError(f"{first} needs --profile or -o FILE")


def complain(examined: Examined) -> None:
    """CommandError for a program that cannot run on hakmem; a word about two hakmems in one."""
    from hakmem.launch.preload import SEVERAL

    if examined.fatal is not None:
        message = f"cannot run it on hakmem: {examined.fatal.what}. To fix: {examined.fatal.advice}"
        raise CommandError(message, CommandError.NOT_EXECUTABLE)
    for trap in examined.traps:
        if trap.name == SEVERAL:
            say(f"{trap.what}; {trap.advice}")


def environment_of(asked: Asked, examined: Examined, library: Path) -> dict[str, str]:
    from hakmem.launch.preloadable import preload_list
    from hakmem.target.library import VARIABLE

    settings = python_settings(examined, asked.settings) if asked.is_python else asked.settings
    environment = os.environ | settings
    for name in (VARIABLE, DEBUG_VARIABLE):  # the tool's own, not options of the library
        environment.pop(name, None)
    libraries = [library]
    if asked.harden is not None:
        environment[HARDEN_VARIABLE] = str(asked.harden)
        libraries = hardened(library, asked.harden)
    environment["LD_PRELOAD"] = preload_list(libraries, environment.get("LD_PRELOAD", ""))
    if asked.is_profiled or asked.outputs:
        environment[PROFILE_VARIABLE] = "trace" if asked.trace else str(asked.period_bytes or 1)
    return environment


def python_settings(examined: Examined, settings: dict[str, str]) -> dict[str, str]:
    """Adds that of --python, which children inherit: the program may be a shell that starts Python."""
    from hakmem.doctor.runtimes import CPYTHON, FREE_THREADED, PYPY, PYTHON_SWITCH, ignores_environment

    variable, value = PYTHON_SWITCH
    if settings.get(variable, value) != value:
        raise click.UsageError(
            f"{PYTHON} sets {variable} itself: leave out --env {variable}={settings[variable]}"
        )
    found = runtime_named(examined)
    # The one would not start, the other ignores it.
    if found is not None and found.name in (FREE_THREADED, PYPY):
        raise CommandError(
            f"{examined.program} is {found.name}: {found.serves}. {PYTHON} is not for it; run it without",
            CommandError.NOT_EXECUTABLE,
        )
    if found is not None and found.name == CPYTHON and (option := ignores_environment(examined.words)):
        raise click.UsageError(
            f"{examined.program} {option} ignores {variable}, which {PYTHON} sets: leave out one of them"
        )
    return settings | {variable: value}


def runtime_named(examined: Examined) -> Runtime | None:
    from hakmem.doctor.runtimes import runtime_of

    return runtime_of(examined.program.resolve().name, (path.name for path in examined.libraries))


def watcher(asked: Asked) -> Callable[[Child, Listener], None]:
    """Follows the program to its end.  Checks what can be checked before that is started."""
    if (value := asked.settings.get(PROFILE_VARIABLE)) is not None:
        raise click.UsageError(
            f"{'-o' if asked.outputs else '--profile'} sets {PROFILE_VARIABLE} itself: leave out "
            f"--env {PROFILE_VARIABLE}={value}"
        )
    if asked.trace is not None:
        from hakmem.launch.tracing import Tracing
        from hakmem.views.screen import progress_bar
        from hakmem.views.trace_text import notes_of

        path = replaceable(asked.trace)
        return lambda child, listener: Tracing(child, listener, path, say, notes_of, progress_bar).run()

    from hakmem.launch.profiling import Plan, Profiling
    from hakmem.launch.results import Results, checked
    from hakmem.profile.model import Mode
    from hakmem.views.profile_file import ending, writer
    from hakmem.views.profile_text import show_profile

    plan = Plan(Mode(asked.mode), asked.period_bytes or 0, asked.conditions)
    show = partial(show_profile, stderr=True, advice=PROFILE_ADVICE)
    results = Results([checked(path, ending(path), writer(path)) for path in asked.outputs], say, show)
    return lambda child, listener: Profiling(child, listener, plan, results, say).run()


def run_kept(
    execute: Callable[[], NoReturn],
    environment: dict[str, str],
    watch: Callable[[Child, Listener], None],
    what: str,
) -> NoReturn:
    """As the program's parent; ends as it does."""
    from hakmem.launch.child import start
    from hakmem.launch.keepers import VARIABLE, Listener

    with closing(Listener()) as listener:
        environment[VARIABLE] = str(listener.path)
        child = start(execute)
        try:
            watch(child, listener)
        except Exception as error:  # the program goes on, and its status is the tool's
            say(f"the {what} ended early: {error}")
            child.wait()
    child.leave()


def hardened(library: Path, level: int) -> list[Path]:
    """The libraries to preload: the checking functions precede those of other libraries."""
    from hakmem.launch.preload import FORTIFY
    from hakmem.target.library import beside

    fortify = beside(library, FORTIFY)
    if fortify is None and level:
        warn(
            f"{FORTIFY} is not beside {library}: hardened mode is on, but without bounds checks in C library "
            "functions"
        )
    return [fortify, library] if fortify is not None and level else [library]


def launch(words: tuple[str, ...], environment: dict[str, str]) -> NoReturn:
    """Executes the program.  Python ignores SIGPIPE and SIGXFSZ; the program must not inherit that."""
    from hakmem.launch.preload import SHELL, resolve

    path = str(resolve(words[0]))
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(path, list(words), environment)
    except OSError as error:
        if error.errno == errno.ENOEXEC:  # a script without #!: for the shell
            os.execve(SHELL, [SHELL, path, *words[1:]], environment)
        raise CommandError(f"cannot run {path}: {error.strerror}", CommandError.NOT_EXECUTABLE) from None
