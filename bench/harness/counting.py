"""Figures that are counted in the real programs instead of timed, and their table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.table import Table

from .allocators import Allocator
from .real_program import CommandProgram
from .workload import Length

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    program: str
    base: int  # the count on glibc that the figures are divided by
    figures: dict[str, float | None]  # by allocator; None: it does not run there


@dataclass(frozen=True)
class Count:
    """A kind of figure.  glibc is among the allocators of `rows`, which raises RunError if its run fails."""

    title: str
    base: str
    tool: str
    missing: Callable[[], str]
    rows: Callable[[CommandProgram, Sequence[Allocator], Length, Tell], list[Row]]


def _texts(row: Row) -> list[str]:
    figures = ("-" if value is None else f"{value:.1f}" for value in row.figures.values())
    return [row.program, str(row.base), *figures]


def to_tsv(rows: list[Row], count: Count) -> str:
    """As docs/performance/instructions.tsv and tlb.tsv have it."""
    lines = [["program", count.base, *rows[0].figures], *map(_texts, rows)]
    return "".join("\t".join(line) + "\n" for line in lines)


def to_table(rows: list[Row], count: Count) -> Table:
    table = Table(title=count.title, title_justify="left")
    table.add_column("program", no_wrap=True)
    for name in (count.base, *rows[0].figures):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_texts(row))
    return table
