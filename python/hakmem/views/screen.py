"""Printing: tables that fit the terminal, and JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from hakmem.base.signals import deferred, stoppable
from hakmem.base.streams import HARMLESS, PlainText

if TYPE_CHECKING:
    from rich.progress import Progress

PIPE_COLUMNS = 120  # where the width is unknown
TERMINAL_COLUMNS, LINES = 80, 24
COLUMNS_MIN, COLUMNS_MAX = 20, 10_000
WRAPPED_COLUMNS_MIN = 24  # narrower text is hard to read
FOLDED_COLUMNS_MIN = 8
GAP = 2  # between columns
SHOW_PROGRESS_AFTER_S = 1.0


class HarmlessConsole(Console):
    """Without the control characters of a process, which would steer the terminal: rich removes few."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for part in super().render(renderable, options):
            yield part if part.control else part._replace(text=part.text.translate(HARMLESS))


def console(stderr: bool = False) -> Console:
    """For the terminal; for a pipe without colours and with a fixed width."""
    stream = sys.stderr if stderr else sys.stdout
    # Both are given: otherwise rich reads COLUMNS and LINES, and accepts "²" as a number.
    return HarmlessConsole(stderr=stderr, highlight=False, width=columns_of(stream), height=LINES)


def columns_of(stream: TextIO) -> int:
    """COLUMNS, else the terminal's width, at least COLUMNS_MIN: in a narrower terminal lines wrap."""
    asked, found = os.environ.get("COLUMNS", ""), PIPE_COLUMNS
    if asked.isascii() and asked.isdigit() and int(asked[:9]):
        found = int(asked[:9])
    elif stream.isatty():
        found = TERMINAL_COLUMNS
        with suppress(OSError):  # some terminals (serial lines, expect) report 0 for unknown
            found = os.get_terminal_size(stream.fileno()).columns or found
    return min(COLUMNS_MAX, max(COLUMNS_MIN, found))


class Sheet:
    """A table without frames that never truncates a figure: if it is wider than the terminal, it continues
    below, each part starting with the column `key`, which identifies rows.  A column "<name" is text, others
    are figures, aligned right."""

    def __init__(
        self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text]], key: int = 0
    ) -> None:
        self._title = title
        self._columns = columns
        self._rows = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
        self._key = key

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        if self._title:
            yield Text(self._title, "bold")
        for number, places in enumerate(self._parts(options.max_width)):
            if number:
                yield Text("")
            yield self._part(places, options.max_width)

    def _parts(self, width: int) -> list[list[int]]:
        """The columns of each part."""
        widths = [self._width(place) for place in range(len(self._columns))]
        parts: list[list[int]] = [[]]
        used = widths[self._key]
        for place in range(len(self._columns)):
            if place == self._key:
                continue
            needed = GAP + (min(widths[place], WRAPPED_COLUMNS_MIN) if self._wraps(place) else widths[place])
            if parts[-1] and used + needed > width:
                parts.append([])
                used = widths[self._key]
            parts[-1].append(place)
            used += needed
        return [sorted([self._key, *part]) for part in parts]

    def _part(self, places: Sequence[int], width: int) -> Table:
        """The last text column wraps; if even two columns are too wide, all do."""
        made = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
        kept = [place for place in places if not self._wraps(place)]
        rest = FOLDED_COLUMNS_MIN if len(kept) < len(places) else -GAP
        is_tight = sum(self._width(place) + GAP for place in kept) + rest > width
        for place in places:
            name = self._columns[place]
            made.add_column(
                name.removeprefix("<"),
                justify="left" if name.startswith("<") else "right",
                header_style="dim",
                no_wrap=not (is_tight or self._wraps(place)),
                overflow="fold",
            )
        for row in self._rows:
            made.add_row(*(row[place] for place in places))
        return made

    def _wraps(self, place: int) -> bool:
        return place == len(self._columns) - 1 and self._columns[place].startswith("<")

    def _width(self, place: int) -> int:
        lines = (line for row in self._rows for line in row[place].plain.splitlines())
        return max(map(cell_len, [self._columns[place].removeprefix("<"), *lines]))


def one_line(words: Sequence[str], columns_max: int | None = None) -> str:
    """Words on one line, whatever they contain: without control characters.  A command that is too long
    loses its program's folder first, as the name says more than the path; truncation is marked."""
    text = without_control_signs(words)
    if columns_max is None or cell_len(text) <= columns_max:
        return text
    text = without_control_signs([words[0].rpartition("/")[2], *words[1:]])
    if cell_len(text) <= columns_max:
        return text
    return set_cell_size(text, columns_max - 1).rstrip() + "…"


def without_control_signs(words: Sequence[str]) -> str:
    text = "".join(sign if sign.isprintable() else " " for sign in " ".join(words))
    return " ".join(text.split())


def print_json(data: Any) -> None:  # noqa: ANN401 - any JSON value
    """As ASCII in the C locale, and for file names that are not UTF-8."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode("ascii" if isinstance(sys.stdout, PlainText) else sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(data, indent=2)
    print(text)


@contextmanager
def progress_bar(what: str, for_s: float | None = None) -> Iterator[Callable[..., None]]:
    """A bar on standard error, advanced to what is done, with a word on what was seen so far; nothing if that
    is not a terminal.  With `for_s` what is done is a time, and the bar is there at once; else it is a
    share, and the bar is for what takes more than a second."""
    errors, began_s = console(stderr=True), time.monotonic()
    shown_from_s = began_s + (SHOW_PROGRESS_AFTER_S if for_s is None else 0.0)
    bar: Progress | None = None

    def report(done: float, seen: str = "") -> None:
        nonlocal bar
        if bar is None and errors.is_terminal and time.monotonic() >= shown_from_s:
            with deferred():
                bar = started_bar(errors, what, began_s, for_s)
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done, seen=seen)

    try:
        with stoppable():
            report(0.0)
            yield report
    finally:
        if bar is not None:
            bar.stop()


def started_bar(errors: Console, what: str, began_s: float, for_s: float | None) -> Progress:
    """A bar whose time counts from `began_s`.  Its module is imported on use: most commands are fast."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    texts = TextColumn("{task.description}"), TextColumn("{task.fields[seen]}")
    clock = TimeElapsedColumn() if for_s is None else TimeRemainingColumn()
    bar = Progress(texts[0], BarColumn(), texts[1], clock, console=errors, transient=True)
    task = bar.add_task(what, total=for_s or 1.0, seen="")
    bar.tasks[task].start_time = began_s
    bar.start()
    return bar
