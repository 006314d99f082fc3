"""The tables of `hakmem top`: which there are, which one is shown, and how each is sorted."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from hakmem.views.top_sites import SITES
from hakmem.views.watching import HEAPS, VIEWS, Moment, View

TABLES = (*VIEWS, SITES, HEAPS)  # by the keys 1, 2 …


class Tables:
    """The tables of one process after the other.  That of heaps is there from the first heap on."""

    def __init__(self) -> None:
        self.number = 0
        self.has_heaps = False
        self._sort_columns = [view.sorted_by for view in TABLES]
        self._is_reversed = [False for _ in TABLES]

    @property
    def all(self) -> Sequence[View]:
        return [view for view in TABLES if view is not HEAPS or self.has_heaps]

    @property
    def shown(self) -> View:
        return TABLES[self.number]

    @property
    def is_at_sites(self) -> bool:
        return self.shown is SITES

    def follow(self) -> None:
        self.has_heaps = False
        self.show(self.number if self.shown in self.all else 0)

    def notice(self, moment: Moment) -> bool:
        """Whether the moment brings a table that was not there."""
        had, self.has_heaps = self.has_heaps, self.has_heaps or bool(moment.snapshot.heaps)
        return self.has_heaps != had

    def show(self, number: int) -> None:
        """Another table, if there is one of this number."""
        if number < len(self.all):
            self.number = number

    def sort_by_next(self) -> None:
        columns = len(self.shown.columns)
        self._sort_columns[self.number] = (self._sort_columns[self.number] + 1) % columns

    def reverse(self) -> None:
        """Smallest first, or largest first again."""
        self._is_reversed[self.number] = not self._is_reversed[self.number]

    def names(self) -> list[Text]:
        return [
            Text(f" {number + 1} {view.name} ", style="reverse" if number == self.number else "dim")
            for number, view in enumerate(self.all)
        ]

    def heads(self) -> list[Text]:
        """The heads of the columns, with a mark at the one that rows are sorted by."""
        mark = "▲" if self._is_reversed[self.number] else "▼"
        return [
            aligned(name, name.removeprefix("<") + (mark if self._sort_columns[self.number] == place else ""))
            for place, name in enumerate(self.shown.columns)
        ]

    def rows(self, moment: Moment) -> list[list[Text]]:
        column, is_reversed = self._sort_columns[self.number], self._is_reversed[self.number]
        rows = self.shown.sorted_rows(moment, column, not is_reversed)
        return [[aligned(*pair) for pair in zip(self.shown.columns, row, strict=True)] for row in rows]


def aligned(column: str, text: str) -> Text:
    """As the column "<name" or "name" wants it."""
    return Text(text, justify="left" if column.startswith("<") else "right")
