"""Arguments and options shared by several commands."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])


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


def pid_argument(command: Command) -> Command:
    """PID of the process to read."""
    return click.argument("pid", type=click.IntRange(min=1), shell_complete=complete_pids)(command)


JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
EVERY_FIGURE = click.option(
    "--all", "everything", is_flag=True, help="Also show zero counters, empty classes and all threads."
)
EXECUTABLE = click.option(
    "--executable", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The program file, if it has moved.",
)  # fmt: skip
LIBRARIES = click.option(
    "--library", "libraries", multiple=True, type=click.Path(exists=True, path_type=Path),
    help="A library of the program, or a directory of libraries, if they have moved.",
)  # fmt: skip
