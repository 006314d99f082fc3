"""How far a campaign has come, on standard error: a bar on a terminal, in logs a line for each phase."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

# Takes "phase: the step that begins".
Step = Callable[[str], None]


def _line_steps() -> Step:
    shown = set()

    def step(description: str) -> None:
        phase = description.partition(":")[0]
        if phase not in shown:
            shown.add(phase)
            print(phase, file=sys.stderr, flush=True)

    return step


@contextmanager
def steps(total: int | None = None) -> Iterator[Step]:
    """The function to call each time before something is begun, `total` times if that is known."""
    if not sys.stderr.isatty():
        yield _line_steps()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("building", total=total)
        yield lambda description: progress.update(task, advance=1, description=description)
