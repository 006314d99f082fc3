"""What commands print: tables that fit the terminal, and JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from hakmem.structures import Progress as Report

PIPE_COLUMNS = 120  # where nobody says how wide it is
SHOW_PROGRESS_AFTER_S = 1.0


def console(stderr: bool = False) -> Console:
    """For the terminal, or without colours and of a fixed width for a pipe."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_COLUMNS
    return Console(stderr=stderr, highlight=False, width=width)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """A table without frames.  A column called "<name" is text, others are figures and stand right; of
    texts the last one wraps."""
    made = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    names = [name.removeprefix("<") for name in columns]
    for place, name in enumerate(names):
        is_text = columns[place].startswith("<")
        is_last = place == len(names) - 1
        made.add_column(
            name,
            justify="left" if is_text else "right",
            header_style="dim",
            no_wrap=not (is_text and is_last),
            overflow="fold" if is_text and is_last else "ellipsis",
        )
    for row in rows:
        made.add_row(*row)
    return made


def print_json(data: Any) -> None:  # noqa: ANN401 - whatever json takes
    print(json.dumps(data, indent=2, ensure_ascii=False))


@contextmanager
def progress_bar(what: str) -> Iterator[Report]:
    """A bar on standard error for what takes more than a second; nothing where that is no terminal."""
    bar = Progress(
        TextColumn(what), BarColumn(), TimeElapsedColumn(), console=console(stderr=True), transient=True
    )
    task = bar.add_task(what, total=1.0)
    is_shown = False

    def report(done: float) -> None:
        nonlocal is_shown
        bar.update(task, completed=done)
        if not is_shown and bar.console.is_terminal and (bar.tasks[0].elapsed or 0) > SHOW_PROGRESS_AFTER_S:
            bar.start()
            is_shown = True

    try:
        yield report
    finally:
        if is_shown:
            bar.stop()
