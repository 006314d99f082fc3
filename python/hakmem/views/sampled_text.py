"""Sampled lives as text."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from hakmem.base.durations import duration_text
from hakmem.base.sizes import bytes_text, count_text, counted, share_text
from hakmem.trace.sampled_figures import SampledFigures, SiteRow
from hakmem.views.profile_text import site_text
from hakmem.views.screen import table
from hakmem.views.trace_text import print_head, sizes_table, time_text

SITES_SHOWN = 20


def _site(row: SiteRow) -> tuple[str, ...]:
    return (
        bytes_text(round(row.bytes)),
        count_text(round(row.blocks)),
        time_text(row.median_life_ns),
        share_text(row.freed_elsewhere, 1.0),
        bytes_text(round(row.living_bytes)),
        count_text(row.samples),
        site_text(row.frames).plain,
    )


def print_sampled(console: Console, head: dict[str, Any], figures: SampledFigures, notes: list[str]) -> None:
    """The figures, the sizes, the sites with the most bytes, and the notes."""
    print_head(console, "Sampled lives", head)
    lives = ", ".join(f"{name} {time_text(ns)}" for name, ns in figures.life_quantiles_ns.items())
    elsewhere = share_text(figures.freed_elsewhere, 1.0)
    for line in (
        f"Samples     {count_text(figures.samples)} in {duration_text(figures.seconds)}, of "
        f"{counted(figures.threads, 'thread')}",
        f"Allocated   about {counted(round(figures.allocated_blocks), 'block')}, "
        f"{bytes_text(round(figures.allocated_bytes))}",
        f"Freed       about {counted(round(figures.freed_blocks), 'block')}, {elsewhere} by another thread",
        f"Lifetimes   {lives or 'no block was allocated and freed'}",
    ):
        console.print(Text(line))
    console.print()
    console.print(sizes_table(figures.sizes))
    names = ("allocated", "blocks", "median lifetime", "freed by another thread", "live", "samples", "<site")
    console.print(table("Sites", names, [_site(row) for row in figures.sites[:SITES_SHOWN]]))
    for note in notes:
        console.print(Text(note, style="yellow"))
