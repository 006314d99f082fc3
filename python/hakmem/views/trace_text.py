"""A trace as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from hakmem.base.durations import duration_text
from hakmem.base.sizes import bytes_text, count_text, counted, share_text, sparkline
from hakmem.trace.figures import NS_PER_S, SizeRow, TraceFigures
from hakmem.views.cells import rate_text
from hakmem.views.profile_text import SITES_SHOWN, site_text
from hakmem.views.screen import Sheet, one_line

if TYPE_CHECKING:
    from hakmem.trace.sampled_figures import SampledFigures, SiteRow

COMMAND_SHOWN = 60
CURVE_WIDTH = 60


def time_text(ns: float | None) -> str:
    if ns is None:
        return "–"
    for unit, size in (("s", NS_PER_S), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def _lines(figures: TraceFigures | SampledFigures) -> list[str]:
    elsewhere = share_text(figures.freed_elsewhere, 1.0)
    lives = ", ".join(f"{name} {time_text(ns)}" for name, ns in figures.life_quantiles_ns.items())
    allocated, freed = (counted(n, "block") for n in (figures.allocated_blocks, figures.freed_blocks))
    seconds, threads = duration_text(figures.seconds), counted(figures.threads, "thread")
    about = "" if isinstance(figures, TraceFigures) else "about "
    lines = [
        f"Allocated   {about}{allocated}, {bytes_text(figures.allocated_bytes)}",
        f"Freed       {about}{freed}, {elsewhere} by another thread",
        f"Lifetimes   {lives or 'no block was allocated and freed'}",
    ]
    if not isinstance(figures, TraceFigures):
        return [f"Samples     {count_text(figures.samples)} in {seconds}, of {threads}", *lines]
    rss, rate = figures.peak_anonymous_bytes, rate_text(figures.events_a_second)
    peak = bytes_text(figures.peak_live_bytes) + (f" (anonymous RSS {bytes_text(rss)})" if rss else "")
    return [
        f"Events      {count_text(figures.events)} in {seconds}, {rate}, of {threads}",
        *lines,
        f"Live        {bytes_text(figures.live_bytes_before)} at the start, "
        f"{peak} at most, {bytes_text(figures.live_bytes_after)} at the end",
        f"            {sparkline([float(value) for value in figures.live_curve], CURVE_WIDTH)}",
    ]


def notes_of(end: dict[str, Any] | None, lost: int) -> list[str]:
    """Sentences on events that are missing or repaired."""
    notes = []
    if end is None:
        notes.append("the file was cut off: it is shown up to its last complete block")
    if lost:
        notes.append(
            f"{counted(lost, 'event is missing', 'events are missing')}: they came faster than they were read"
        )
    for name, text in (
        ("exchanged", "pairs of events of two threads were reordered, as their address requires"),
        ("unseen_frees", "blocks were freed unseen, by ending threads or among missing events"),
        ("unknown_frees", "freed blocks were allocated unseen"),
    ):
        if end and end.get(name):
            notes.append(f"{count_text(end[name])} {text}")
    return notes


def _sizes(rows: list[SizeRow]) -> Sheet:
    names = ("requested", "blocks", "bytes", "median lifetime", "live at the end")
    return Sheet(
        "Sizes",
        names,
        [
            (
                f"≤ {bytes_text(row.up_to_bytes)}",
                count_text(row.blocks),
                bytes_text(row.bytes),
                time_text(row.median_life_ns),
                bytes_text(row.live_bytes),
            )
            for row in rows
        ],
    )


def _sites(rows: list[SiteRow]) -> Sheet:
    names = ("allocated", "blocks", "median lifetime", "freed by another thread", "live", "samples", "<site")
    return Sheet(
        "Sites",
        names,
        [
            (
                bytes_text(row.bytes),
                count_text(row.blocks),
                time_text(row.median_life_ns),
                share_text(row.freed_elsewhere, 1.0),
                bytes_text(row.live_bytes),
                count_text(row.samples),
                site_text(row.frames).plain,
            )
            for row in rows[:SITES_SHOWN]
        ],
    )


def print_trace(
    console: Console, head: dict[str, Any], figures: TraceFigures | SampledFigures, notes: list[str]
) -> None:
    """Whose trace it is and when it began; its figures, tables and notes."""
    what = "Trace" if isinstance(figures, TraceFigures) else "Sampled lives"
    if "pid" in head:
        command = one_line(head.get("command") or ["unnamed"], COMMAND_SHOWN)
        whose = one_line([f"process {head['pid']} ({command}), {head.get('began', '?')}"])
        console.print(f"[bold]{what} of[/] {escape(whose)}\n")
    else:  # as --anonymous leaves it
        console.print(f"[bold]{what}[/], anonymous\n")
    for line in _lines(figures):
        console.print(Text(line))
    console.print()
    console.print(_sizes(figures.sizes))
    if not isinstance(figures, TraceFigures):
        console.print(_sites(figures.sites))
    for note in notes:
        console.print(Text(note, style="yellow"))
