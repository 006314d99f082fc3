"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])


def complete_pids(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """PIDs with their programs' names, for shells that show both."""
    found = []
    for path in Path("/proc").glob(f"{incomplete}*/comm"):
        if path.parent.name.isdigit():
            try:
                found.append(CompletionItem(path.parent.name, help=path.read_text().strip()))
            except OSError:
                continue
    return found


def pid_argument(command: Command) -> Command:
    """PID of the process to look into."""
    return click.argument("pid", type=click.IntRange(min=1), shell_complete=complete_pids)(command)


JSON = click.option("--json", "as_json", is_flag=True, help="JSON on standard output instead of tables.")
EVERY_FIGURE = click.option(
    "--all", "everything", is_flag=True, help="Zero counters, empty classes and every thread, too."
)
