"""The result on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from .figures import locks_per_million, magazine_hit_rate, page_reuse
from .text import (
    FAULTS_WORTH_SHOWING,
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

COUNTER_COLUMNS = (
    "hit rate",
    "refills",
    "flushes",
    "page reuse",
    "new pages",
    "locks/M ops",
    "maps",
    "purges",
)


def _new_table(title: str, document: Document, *more: str) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("benchmark", no_wrap=True)
    for name in [*document["allocators"], *more]:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _cell_text(cell: dict[str, Any] | None, measure: str, divisor: float, best: bool) -> str:
    if cell is None:
        return "[red]failed[/red]"
    figures = {key: cell[measure][key] / divisor for key in ("median", "min", "max")}
    return _spread_text(figures, best)


def _spread_text(figures: dict[str, float] | None, best: bool) -> str:
    if figures is None:
        return "[red]failed[/red]"
    middle, least, most = (digits(figures[key]) for key in ("median", "min", "max"))
    shown = f"[bold green]{middle}[/]" if best else middle
    return shown if least == most else f"{shown} [dim]{least}-{most}[/]"


def _best_of_all(row: dict[str, Any], measure: str) -> str:
    return min(row["cells"], key=lambda name: row["cells"][name][measure]["median"], default="")


def compared_table(document: Document, measure: str) -> Table:
    """All allocators in one measure, with the spread, and the geometric means in the last row."""
    table = _new_table(f"{TITLES[measure]} (median, min-max)", document, "hakmem / best peer")
    for row in document["benchmarks"]:
        unit, divisor = row_unit(row, measure)
        best = _best_of_all(row, measure)
        cells = [
            _cell_text(row["cells"].get(name), measure, divisor, name == best)
            for name in document["allocators"]
        ]
        table.add_row(f"{row['name']} {unit}".strip(), *cells, hakmem_ratio(row, measure))
    table.add_section()
    for label, texts in mean_rows(document, measure):
        table.add_row(label, *texts, "")
    return table


def pairs_table(document: Document) -> Table | None:
    """The intervals of all ratios of times."""
    others = [name for name in document["allocators"] if name != document["reference"]]
    table = Table(title=PAIRS, title_justify="left", header_style="bold")
    for name in ("benchmark", *others):
        table.add_column(name, no_wrap=True)
    for name, texts in pair_rows(document):
        table.add_row(name, *texts)
    return table if others else None


def extra_table(document: Document, extra: dict[str, Any]) -> Table:
    """A figure besides time and peak memory, as the programs that have it print it."""
    table = _new_table(f"{extra['title']} (median, min-max)", document, "hakmem / best peer")
    for row in extra["rows"]:
        best = min(row["cells"], key=lambda name: row["cells"][name]["median"])
        cells = [_spread_text(row["cells"].get(name), name == best) for name in document["allocators"]]
        table.add_row(extra_name(row), *cells, extra_ratio(row))
    return table


def faults_table(document: Document) -> Table | None:
    """Minor page faults per operation, where there are any to speak of."""
    table = _new_table("Minor page faults per operation (median)", document)
    for row in document["benchmarks"]:
        faults = {name: cell["faults_per_op"] for name, cell in row["cells"].items()}
        if max(faults.values(), default=0) >= FAULTS_WORTH_SHOWING:
            cells = [digits(faults[name]) if name in faults else "failed" for name in document["allocators"]]
            table.add_row(row["name"], *cells)
    return table if table.row_count else None


def counters_table(document: Document) -> Table | None:
    """hakmem's counts in its untimed runs."""
    reports = document["hakmem_reports"]
    table = Table(title="hakmem's own counters (untimed runs)", title_justify="left", header_style="bold")
    table.add_column("benchmark", no_wrap=True)
    for name in COUNTER_COLUMNS:
        table.add_column(name, justify="right")
    for bench, report in reports.items():
        reuse, counters = page_reuse(report), report["exit"]
        table.add_row(
            bench,
            f"{magazine_hit_rate(report):.3%}",
            f"{counters['refills']:,}",
            f"{counters['flushes']:,}",
            "none" if reuse is None else f"{reuse:.2%}",
            f"{counters['unstable_new_pages_forced']:,}",
            f"{locks_per_million(report):.2f}",
            f"{counters['os_maps']:,}",
            f"{counters['os_purges']:,}",
        )
    return table if reports else None


def figures_table(title: str, figures: list[dict[str, Any]]) -> Table | None:
    """Figures beside their targets."""
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in ("figure", "value", "target", ""):
        table.add_column(name)
    for figure in figures:
        verdict = "[green]met[/]" if figure["met"] else "[bold red]missed[/]"
        table.add_row(figure["name"], figure["value"], figure["target"], verdict)
    return table if figures else None


def output_console() -> Console:
    """The console of standard output; a file or a pipe is as wide as the tables want to be."""
    console = Console()
    return console if console.is_terminal else Console(width=200)


def show(document: Document, console: Console) -> None:
    """Everything, the footer last."""
    tables = [
        *(compared_table(document, measure) for measure in TITLES),
        pairs_table(document),
        *(extra_table(document, extra) for extra in document["extras"]),
        faults_table(document),
        counters_table(document),
        figures_table("Targets", document["targets"]),
        figures_table("Mission figures (counted, not timed)", document["figures"]),
    ]
    for table in tables:
        if table is not None:
            console.print(table)
    for sentence in (
        method_sentence(document),
        noise_sentence(document),
        machine_sentence(document),
        allocators_sentence(document),
    ):
        console.print(sentence, style="dim", highlight=False)
    for note in footnotes(document):
        console.print(note, style="yellow", highlight=False, markup=False)
