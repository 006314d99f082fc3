"""Cells of tables that can be sorted: a text, and what it sorts by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hakmem.base.sizes import bytes_text, count_text


@dataclass(frozen=True)
class Cell:
    text: str
    key: float | str


Row = list[Cell]


def number(value: float | None, text: Callable[[float], str] = count_text) -> Cell:
    """A cell of a figure; "–" if it is unknown (yet)."""
    return Cell("–", -1.0) if value is None else Cell(text(value), value)


def size(value: float | None) -> Cell:
    return number(value, bytes_text)


def rate_text(value: float) -> str:
    return f"{count_text(round(value, 1))}/s"


def rate(value: float) -> Cell:
    return Cell(rate_text(value) if value else "·", value)
