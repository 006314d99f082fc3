"""hakmem run: launch a program on hakmem."""

from __future__ import annotations

import errno
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import click

STATS_VARIABLE = "HAKMEM_STATS"
HARDEN_VARIABLE = "HAKMEM_HARDEN"
HARDEN = "--harden"
# Options whose value may be the next argument.
WITH_VALUE = ("--json", "--env")


def _setting(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise click.BadParameter(f"{name!r} is not a setting; use NAME=VALUE")
    return {name: value for name, _, value in pairs}


class Run(click.Command):
    """The level of --harden is attached to it, or 1: the next argument is the program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        number = 0
        while number < len(args) and args[number].startswith("-") and args[number] != "--":
            if args[number] == HARDEN:
                args[number] = f"{HARDEN}=1"
            number += 2 if args[number] in WITH_VALUE else 1
        return super().parse_args(ctx, args)


@click.command("run", cls=Run, context_settings={"ignore_unknown_options": True})
@click.option("--stats", is_flag=True, help="Print hakmem's report on standard error when the program ends.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the report as JSON to FILE; %p in its name becomes the PID, one file for each process.",
)
@click.option(
    HARDEN,
    type=click.IntRange(0, 2),
    metavar="[=LEVEL]",
    help="Hardened mode (docs/SAFETY.md), with bounds checks in C library functions; LEVEL is 1 or 2.",
)
@click.option(
    "--env",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_setting,
    help="Set a variable for the program, such as an option of hakmem (docs/OPTIONS.md).",
)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENT]…")
def command(
    stats: bool, json_file: str | None, harden: int | None, settings: dict[str, str], words: tuple[str, ...]
) -> None:
    """Launch PROGRAM on hakmem.

    If the library cannot be preloaded into the program, the reason is printed and nothing is run. Otherwise
    the program replaces this process: signals and the exit status are its own.

    With --stats or --json, a message says if the program exits without its report: through _exit, a signal,
    or exec of a program without hakmem.

    \b
    Examples:
      hakmem run -- ./server --port 80
      hakmem run --stats -- python3 script.py
      hakmem run --harden -- ./server --port 80
      hakmem run --json /tmp/%p.json --env HAKMEM_DECAY_MS=100 -- make -j8

    \b
    Exit status: the program's; 126 if hakmem cannot be preloaded into it or it is not executable,
    127 if there is no such program.
    """
    from hakmem.base.errors import DEBUG_VARIABLE, CommandError
    from hakmem.launch.preload import examine
    from hakmem.target.library import VARIABLE, find_library

    if stats and json_file:
        raise click.UsageError("--stats and --json exclude each other: there is only one report")
    if json_file == "-":
        raise click.UsageError(
            "the report needs a file: standard output belongs to the program. For standard error use "
            "--env HAKMEM_STATS=json"
        )
    library = find_library()
    examined = examine(words, library)
    if examined.fatal is not None:
        message = f"cannot run it on hakmem: {examined.fatal.what}. To fix: {examined.fatal.advice}"
        raise CommandError(message, CommandError.NOT_EXECUTABLE)
    environment = os.environ | settings
    for name in (VARIABLE, DEBUG_VARIABLE):  # the tool's own, not options of the library
        environment.pop(name, None)
    libraries = [library]
    if harden is not None:
        environment[HARDEN_VARIABLE] = str(harden)
        libraries = hardened(library, harden)
    environment["LD_PRELOAD"] = preload_list(libraries, environment.get("LD_PRELOAD", ""))
    if stats or json_file:
        launch_watched(words, environment, absolute(json_file) if json_file else None, examined.linked)
    launch(words, environment)


def launch_watched(
    words: tuple[str, ...], environment: dict[str, str], json_file: Path | None, linked: Path | None
) -> NoReturn:
    """Requests the report, and a message if the program exits without it."""
    from hakmem.launch.leaving import expected_file, expected_mark, watch

    expected, option = (
        (expected_file(str(json_file)), f"json:{json_file}") if json_file else expected_mark() or (None, "1")
    )
    cancel = watch(replace(expected, linked=linked), words[0]) if expected else None
    if expected and cancel is None and not json_file:
        option = "1"  # without a watcher, no marker
    environment[STATS_VARIABLE] = option
    try:
        launch(words, environment)
    finally:  # it was not run
        if cancel is not None:
            os.write(cancel, b"x")


def absolute(name: str) -> Path:
    """The program may change its directory before it ends."""
    from hakmem.base.errors import HakmemError

    try:
        return Path(name).absolute()
    except OSError as error:
        raise HakmemError(f"cannot resolve {name}: working directory: {error.strerror}") from None


def hardened(library: Path, level: int) -> list[Path]:
    """The libraries to preload: the checking functions precede those of other libraries."""
    from hakmem.launch.preload import FORTIFY, fortify_beside

    fortify = fortify_beside(library)
    if fortify is None and level:
        click.echo(
            f"hakmem: warning: {FORTIFY} is not beside {library}: hardened mode is on, but without bounds "
            "checks in C library functions",
            err=True,
        )
    return [fortify, library] if fortify is not None and level else [library]


def preload_list(libraries: list[Path], present: str) -> str:
    """hakmem first, then the libraries of LD_PRELOAD."""
    ours = {path.name for path in libraries}
    others = [name for name in present.replace(":", " ").split() if Path(name).name not in ours]
    return ":".join([*map(str, libraries), *others])


def launch(words: tuple[str, ...], environment: dict[str, str]) -> NoReturn:
    """Executes the program.  Python ignores SIGPIPE and SIGXFSZ; the program must not inherit that."""
    from hakmem.base.errors import CommandError
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
