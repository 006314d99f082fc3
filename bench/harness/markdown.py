"""The result as Markdown, for the README."""

from __future__ import annotations

from typing import Any

from .text import (
    TITLES,
    Document,
    allocators_sentence,
    digits,
    footnotes,
    hakmem_ratio,
    machine_sentence,
    method_sentence,
    row_unit,
)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell_text(cell: dict[str, Any] | None, measure: str, divisor: float) -> str:
    """The median and half the distance from the least to the most, in percent of it."""
    if cell is None:
        return "failed"
    figures = cell[measure]
    deviation = 50 * (figures["max"] - figures["min"]) / figures["median"]
    return f"{digits(figures['median'] / divisor)} ±{deviation:.0f} %"


def _table(document: Document, measure: str) -> list[str]:
    names = list(document["allocators"])
    lines = [_line([TITLES[measure], *names, "hakmem / best peer"]), "|---|" + "---:|" * (len(names) + 1)]
    for row in document["benchmarks"]:
        unit, divisor = row_unit(row, measure)
        cells = [_cell_text(row["cells"].get(name), measure, divisor) for name in names]
        lines.append(_line([f"{row['name']} {unit}".strip(), *cells, hakmem_ratio(row, measure)]))
    means = document["geometric_means"][measure]
    means_text = [f"**{means[name]:.2f}**" if name in means else "" for name in names]
    lines.append(_line(["geometric mean of the ratios to the best peer", *means_text, ""]))
    return lines


def _figures(document: Document) -> list[str]:
    if not document["figures"]:
        return []
    rows = [
        _line([f["name"], f["value"], f["target"], "met" if f["met"] else "missed"])
        for f in document["figures"]
    ]
    return [_line(["Counted by hakmem", "value", "target", ""]), "|---|---|---|---|", *rows, ""]


def to_markdown(document: Document) -> str:
    """Tables of time and memory, the mission's figures, and where all this was measured."""
    lines = [*_table(document, "ns_per_op"), "", *_table(document, "peak_rss_kib"), "", *_figures(document)]
    lines += [method_sentence(document), f"Machine: {machine_sentence(document)}."]
    lines += [f"Allocators: {allocators_sentence(document)}.", *footnotes(document)]
    return "\n".join(lines)
