"""The result as one HTML page that needs nothing else, and its charts as PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .charts import Chart, charts, write_charts
from .text import (
    FAULTS_WORTH_SHOWING,
    PAIRS,
    TITLES,
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

Document = dict[str, Any]
Spread = dict[str, float]


def _cell(figures: Spread | None, divisor: float, best: bool) -> dict[str, Any]:
    if figures is None:
        return {"text": "failed", "spread": "", "best": False}
    middle, least, most = (digits(figures[key] / divisor) for key in ("median", "min", "max"))
    return {"text": middle, "spread": "" if least == most else f"{least} to {most}", "best": best}


def _row(
    head: str, figures: dict[str, Spread], names: list[str], divisor: float, ratio: str
) -> dict[str, Any]:
    best = min(figures, key=lambda name: figures[name]["median"], default=None)
    cells = [_cell(figures.get(name), divisor, name == best) | {"own": name == "hakmem"} for name in names]
    return {"head": head, "cells": cells, "ratio": ratio}


def _compared_table(document: Document, measure: str) -> dict[str, Any]:
    names = list(document["allocators"])
    rows = []
    for row in document["benchmarks"]:
        unit, divisor = row_unit(row, measure)
        figures = {name: cell[measure] for name, cell in row["cells"].items()}
        rows.append(
            _row(f"{row['name']} {unit}".strip(), figures, names, divisor, hakmem_ratio(row, measure))
        )
    means = [{"head": label, "cells": texts} for label, texts in mean_rows(document, measure)]
    return {"title": TITLES[measure], "rows": rows, "means": means}


def _extra_table(document: Document, extra: dict[str, Any]) -> dict[str, Any]:
    names = list(document["allocators"])
    rows = [_row(extra_name(row), row["cells"], names, 1.0, extra_ratio(row)) for row in extra["rows"]]
    return {"title": extra["title"], "rows": rows, "means": []}


def _faults_table(document: Document) -> dict[str, Any]:
    rows = []
    for row in document["benchmarks"]:
        figures = {
            name: dict.fromkeys(("median", "min", "max"), cell["faults_per_op"])
            for name, cell in row["cells"].items()
        }
        if any(figure["median"] >= FAULTS_WORTH_SHOWING for figure in figures.values()):
            rows.append(_row(row["name"], figures, list(document["allocators"]), 1.0, ""))
    return {"title": "Minor page faults per operation", "rows": rows, "means": []}


def page(document: Document, made: list[Chart]) -> str:
    """The HTML."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    tables = [_compared_table(document, measure) for measure in TITLES]
    tables += [_extra_table(document, extra) for extra in document["extras"]]
    tables.append(_faults_table(document))
    others = [name for name in document["allocators"] if name != document["reference"]]
    return environment.get_template("page.html.j2").render(
        document=document,
        charts=made,
        tables=[table for table in tables if table["rows"]],
        method=method_sentence(document),
        machine=f"{machine_sentence(document)}; {noise_sentence(document)}",
        pairs={"title": PAIRS, "names": others, "rows": pair_rows(document)},
        allocators=allocators_sentence(document),
        notes=footnotes(document),
        met=sum(figure["met"] for figure in document["targets"]),
    )


def write_report(document: Document, folder: Path) -> None:
    """index.html and the charts, into the folder."""
    made = list(charts(document))
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    write_charts(made, folder)
    (folder / "index.html").write_text(page(document, made))
