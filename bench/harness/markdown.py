"""The result as Markdown, and as plain data."""

from __future__ import annotations

from typing import Any

from .text import (
    PAIRS,
    TITLES,
    Document,
    allocators_sentence,
    digits,
    extra_name,
    extra_ratio,
    footnotes,
    hakmem_ratio,
    machine_sentence,
    mean_rows,
    method_sentence,
    noise_sentence,
    pair_rows,
    row_unit,
)

FIGURE_COLUMNS = 4  # of a table of figures beside their targets, which are texts

Lines = list[list[str]]  # a table: its head, then its rows


def _cell_text(cell: dict[str, Any] | None, measure: str, divisor: float) -> str:
    return "failed" if cell is None else digits(cell[measure]["median"] / divisor)


def _spread_text(figures: dict[str, float] | None) -> str:
    """The median and half the distance from the least to the most, in percent of it: none of a single run."""
    if figures is None:
        return "failed"
    if figures["min"] == figures["max"] or not figures["median"]:
        return digits(figures["median"])
    deviation = 50 * (figures["max"] - figures["min"]) / figures["median"]
    return f"{digits(figures['median'])} ±{deviation:.0f} %"


def _compared(document: Document, measure: str) -> Lines:
    names = list(document["allocators"])
    lines = [[TITLES[measure], *names, "hakmem / best peer"]]
    for row in document["benchmarks"]:
        unit, divisor = row_unit(row, measure)
        cells = [_cell_text(row["cells"].get(name), measure, divisor) for name in names]
        lines.append([f"{row['name']} {unit}".strip(), *cells, hakmem_ratio(row, measure)])
    lines += [[label, *texts, ""] for label, texts in mean_rows(document, measure)]
    return lines


def _pairs(document: Document) -> Lines:
    head = [PAIRS, *(name for name in document["allocators"] if name != document["reference"])]
    return [head, *([name, *texts] for name, texts in pair_rows(document))]


def _extra(document: Document, extra: dict[str, Any]) -> Lines:
    names = list(document["allocators"])
    lines = [[extra["title"], *names, "hakmem / best peer"]]
    for row in extra["rows"]:
        cells = [_spread_text(row["cells"].get(name)) for name in names]
        lines.append([extra_name(row), *cells, extra_ratio(row)])
    return lines


def _figures(title: str, figures: list[dict[str, Any]]) -> Lines:
    rows = [[f["name"], f["value"], f["target"], "met" if f["met"] else "missed"] for f in figures]
    return [[title, "value", "target", ""], *rows] if rows else []


def _tables(document: Document) -> list[Lines]:
    """Time and memory, then the mission's figures."""
    found = [*(_compared(document, measure) for measure in TITLES), _pairs(document)]
    found += [_extra(document, extra) for extra in document["extras"]]
    found += [_figures("Target", document["targets"]), _figures("Counted by hakmem", document["figures"])]
    return [lines for lines in found if lines]


def _notes(document: Document) -> list[str]:
    """Where and how all this was measured."""
    machine = f"Machine: {machine_sentence(document)}; {noise_sentence(document)}."
    sentences = [method_sentence(document), machine]
    return [*sentences, f"Allocators: {allocators_sentence(document)}.", *footnotes(document)]


def _markdown_table(lines: Lines) -> list[str]:
    head, *rows = lines
    right = len(head) > FIGURE_COLUMNS
    rule = "|---|" + ("---:|" if right else "---|") * (len(head) - 1)
    return [_line(head), rule, *map(_line, rows), ""]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def to_markdown(document: Document) -> str:
    """Tables of time and memory, the mission's figures, and where all this was measured."""
    lines = [line for table in _tables(document) for line in _markdown_table(table)]
    return "\n".join([*lines, *_notes(document)])


def to_tsv(document: Document) -> str:
    """As plain data, docs/performance/campaign.tsv: an empty line ends a table, `#` begins a note."""
    tables = ("".join("\t".join(line) + "\n" for line in table) for table in _tables(document))
    return "\n".join([*tables, "".join(f"# {note}\n" for note in _notes(document))])
