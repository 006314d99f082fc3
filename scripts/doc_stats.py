"""The figures, as the tables of all that is seen from outside (TABLES) and the tool's catalogue have them."""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from doc_tables import arguments, table  # noqa: E402
from hakmem.census import catalogue  # noqa: E402

TABLES = (ROOT / "src/base/counters.def", ROOT / "src/observe/records.def")


@dataclass(frozen=True)
class Figure:
    name: str
    unit: str
    meaning: str
    role: str = "counter"

    def row(self) -> tuple[str, ...]:
        return f"`{self.name}`", self.unit, self.role, self.meaning


def lines() -> list[str]:
    return [line for table in TABLES for line in table.read_text().splitlines()]


def lines_of(kind: str) -> list[list[str]]:
    """The arguments of each; texts without their quotes."""
    rows = [arguments(found[1]) for line in lines() if (found := re.match(rf"{kind}\((.*)\)", line))]
    return [[ast.literal_eval(word) if word.startswith('"') else word for word in row] for row in rows]


def figures_of(kind: str) -> list[list[str]]:
    """By the names that readers see."""
    unstable = [[f"unstable_{row[0]}", *row[1:]] for row in lines_of(f"UNSTABLE_{kind}")]
    return lines_of(kind) + unstable


def totals() -> list[Figure]:
    return [Figure(name, unit, meaning, role) for name, role, unit, meaning in figures_of("TOTAL")]


def class_counters() -> list[Figure]:
    return [Figure(*row) for row in lines_of("CLASS_COUNTER")]


def counters_by_group() -> list[tuple[str, list[Figure]]]:
    """Under the headings of `hakmem stat`."""
    figures = {row[0]: Figure(*row) for row in figures_of("COUNTER")}
    groups = catalogue.grouped(figures)
    return [(heading, [figures[name] for name in names]) for heading, names in groups.items() if names]


def heaps() -> list[Figure]:
    """Those that are counted: a ratio is a metric alone."""
    known = (*catalogue.HEAP_GAUGES, *catalogue.HEAP_COUNTERS)
    return [Figure(one.key, one.unit, one.meaning, one.role) for one in known if one.unit != "1"]


def records() -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {row[0]: [] for row in lines_of("RECORD")}
    for row in lines_of("FIELD"):
        found[row[0]].append(f"`{row[2]}`")
    for row in lines_of("WRITABLE"):
        found[row[0]].append(f"`{row[2]}` (writable)")
    for row in lines_of("NESTED"):
        found[row[0]].append(f"`{row[2]}` (of `{row[4]}`)")
    made_by_tables = {"counters": "see above", "class_counters": "see above", "totals": "see above"}
    made_by_tables["options"] = "one for each option ([OPTIONS.md](OPTIONS.md))"
    return [(name, fields or [made_by_tables[name]]) for name, fields in found.items()]


def figures_table(figures: list[Figure]) -> str:
    return table("figure | unit | role | meaning", [figure.row() for figure in figures])


def figures_of_threads() -> str:
    groups = counters_by_group()
    return "\n\n".join(f"### {heading}\n\n{figures_table(figures)}" for heading, figures in groups)


def formats() -> str:
    rows = [(f"`{name}`", ", ".join(fields)) for name, fields in records()]
    constants = ", ".join(f"`{row[0]}`" for row in lines_of("CONSTANT"))
    return f"{table('record | fields', rows)}\n\nConstants: {constants}."


PARTS = {
    "counters": figures_of_threads,
    "counters of classes": lambda: figures_table(class_counters()),
    "totals": lambda: figures_table(totals()),
    "figures of heaps": lambda: figures_table(heaps()),
    "records": formats,
}
