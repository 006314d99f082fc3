"""The result as Markdown, for the README."""

from __future__ import annotations

from typing import Any

from .text import (
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
    row_unit,
)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell_text(cell: dict[str, Any] | None, measure: str, divisor: float) -> str:
    return "failed" if cell is None else _spread_text(cell[measure], divisor)


def _spread_text(figures: dict[str, float] | None, divisor: float = 1.0) -> str:
    """The median and half the distance from the least to the most, in percent of it."""
    if figures is None:
        return "failed"
    deviation = 50 * (figures["max"] - figures["min"]) / figures["median"] if figures["median"] else 0
    return f"{digits(figures['median'] / divisor)} ±{deviation:.0f} %"


def _table(document: Document, measure: str) -> list[str]:
    names = list(document["allocators"])
    lines = [_line([TITLES[measure], *names, "hakmem / best peer"]), "|---|" + "---:|" * (len(names) + 1)]
    for row in document["benchmarks"]:
        unit, divisor = row_unit(row, measure)
        cells = [_cell_text(row["cells"].get(name), measure, divisor) for name in names]
        lines.append(_line([f"{row['name']} {unit}".strip(), *cells, hakmem_ratio(row, measure)]))
    for label, means in mean_rows(document):
        texts = [f"**{means[measure][name]:.2f}**" if name in means[measure] else "" for name in names]
        lines.append(_line([label, *texts, ""]))
    return [*lines, ""]


def _extra(document: Document, extra: dict[str, Any]) -> list[str]:
    names = list(document["allocators"])
    lines = [_line([extra["title"], *names, "hakmem / best peer"]), "|---|" + "---:|" * (len(names) + 1)]
    for row in extra["rows"]:
        cells = [_spread_text(row["cells"].get(name)) for name in names]
        lines.append(_line([extra_name(row), *cells, extra_ratio(row)]))
    return [*lines, ""]


def _figures(title: str, figures: list[dict[str, Any]]) -> list[str]:
    rows = [_line([f["name"], f["value"], f["target"], "met" if f["met"] else "missed"]) for f in figures]
    return [_line([title, "value", "target", ""]), "|---|---|---|---|", *rows, ""] if rows else []


def to_markdown(document: Document) -> str:
    """Tables of time and memory, the mission's figures, and where all this was measured."""
    lines = [*_table(document, "ns_per_op"), *_table(document, "peak_rss_kib")]
    for extra in document["extras"]:
        lines += _extra(document, extra)
    lines += _figures("Target", document["targets"])
    lines += _figures("Counted by hakmem", document["figures"])
    lines += [method_sentence(document), f"Machine: {machine_sentence(document)}."]
    lines += [f"Allocators: {allocators_sentence(document)}.", *footnotes(document)]
    return "\n".join(lines)
