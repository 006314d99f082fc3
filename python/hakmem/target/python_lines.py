"""The line of an instruction, by the tables in code objects of CPython.

3.9         pairs of bytes: the code that passes until the line changes, and the change
3.10        pairs of bytes: the change of the line, after the code that has it
from 3.11   entries that begin with the only byte above 127: their kind, and their code in units of two
            bytes; a change of the line may follow"""

from __future__ import annotations

from collections.abc import Iterator

NO_LINE = 0
WITHOUT_LINE = -128  # in 3.10's
NOWHERE, LONG, NO_COLUMNS, ONE_LINE = 15, 14, 13, range(10, 13)  # kinds of entries


def lines_of_code(version: int, table: bytes, first_line: int, at: int) -> int:
    """The line of the instruction at this byte of the code; NO_LINE where the compiler made it up."""
    if version == 0x309:
        return _by_steps(table, first_line, at)
    ranges = _ranges(table, first_line) if version == 0x30A else _entries(table, first_line)
    return next((line for end, line in ranges if at < end), NO_LINE)


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _by_steps(table: bytes, line: int, at: int) -> int:
    start = 0
    for size, more in zip(table[::2], table[1::2], strict=False):
        start += size
        if start > at:
            break
        line += _signed(more)
    return line


def _ranges(table: bytes, line: int) -> Iterator[tuple[int, int]]:
    """Ends of ranges, and their lines."""
    end = 0
    for size, more in zip(table[::2], table[1::2], strict=False):
        end += size
        has_line = _signed(more) != WITHOUT_LINE
        line += _signed(more) if has_line else 0
        yield end, line if has_line else NO_LINE


def _entries(table: bytes, line: int) -> Iterator[tuple[int, int]]:
    end = place = 0
    while place < len(table):
        kind, units = table[place] >> 3 & 15, (table[place] & 7) + 1
        end += units * 2
        if kind in (LONG, NO_COLUMNS):
            line += _number(table, place + 1)
        elif kind in ONE_LINE:
            line += kind - ONE_LINE.start
        yield end, NO_LINE if kind == NOWHERE else line
        place += 1
        while place < len(table) and table[place] < 0x80:
            place += 1


def _number(table: bytes, place: int) -> int:
    """Six bits a byte, the lowest first; the lowest bit of all is the sign."""
    value = shift = 0
    while place < len(table):
        value |= (table[place] & 63) << shift
        if not table[place] & 64:
            break
        place, shift = place + 1, shift + 6
    return -(value >> 1) if value & 1 else value >> 1
