"""A trace as a page: memory and events over time, and lifetimes by size."""

from __future__ import annotations

import math
from collections.abc import Callable

from hakmem.base.durations import duration_text
from hakmem.base.sizes import bytes_text, count_text, share_text
from hakmem.trace.curves import LIFETIME_ENDS_NS, Curves, Lifetimes
from hakmem.trace.figures import Count, TraceFigures
from hakmem.trace.file import Trace
from hakmem.trace.living import Living, steps
from hakmem.views.charts import Chart, Series
from hakmem.views.page import Tile, rendered
from hakmem.views.trace_text import notes_of, time_text

SHADE = 80  # per cent of colour for the fullest cell
LIFETIMES = [*(f"< {time_text(end)}" for end in LIFETIME_ENDS_NS), "longer", "live at the end"]

CHARTS: tuple[tuple[str, str, str, tuple[str, ...], Callable[[float], str]], ...] = (
    (
        "memory",
        "Memory",
        "Bytes that the program had requested and not freed; its anonymous memory in RAM; and the memory "
        "that hakmem accounts for. The gap between the first two is the allocator's and the kernel's.",
        ("live blocks", "anonymous RSS", "committed by hakmem"),
        bytes_text,
    ),
    (
        "events",
        "Events",
        "Blocks allocated and freed per second.",
        ("allocated", "freed"),
        lambda value: f"{count_text(value)}/s",
    ),
    (
        "elsewhere",
        "Frees by another thread",
        "The share of frees by a thread that had not allocated the block, where its allocation was seen.",
        ("by another thread",),
        lambda value: share_text(value, 1.0),
    ),
)


def render(trace: Trace) -> str:
    count, curves, lifetimes, living = Count(trace.extent), Curves(trace), Lifetimes(), Living()
    for step in steps(trace, living):
        for one in (count, curves, lifetimes):
            one.add(step)
    figures = count.figures(living, trace.memory)
    charts = charts_of(curves, is_threaded=figures.threads > 1)
    return rendered(
        "trace.html.j2",
        {chart.key: chart.data for chart in charts},
        head=trace.head,
        command=" ".join(trace.head.get("command") or ["anonymous trace"]),
        duration=duration_text(figures.seconds),
        tiles=tiles(figures),
        charts=charts,
        lifetimes=LIFETIMES,
        rows=shaded(lifetimes.rows(living)),
        sizes=[(row, time_text(row.median_life_ns)) for row in figures.sizes],
        notes=notes_of(trace.end, trace.lost),
    )


def charts_of(curves: Curves, *, is_threaded: bool) -> list[Chart]:
    """One axis of time for all."""
    times, by_name = curves.seconds, curves.by_name()

    def series(name: str) -> Series:
        return Series(name, [None if math.isnan(value) else value for value in by_name[name].tolist()])

    return [
        Chart(key, title, text, times.tolist(), [series(name) for name in names if name in by_name], form)
        for key, title, text, names, form in CHARTS[: 2 + is_threaded]
    ]


def tiles(figures: TraceFigures) -> list[Tile]:
    lives, blocks = figures.life_quantiles_ns, count_text(figures.allocated_blocks)
    found = [
        ("Events", count_text(figures.events), f"{count_text(figures.events_a_second)} a second"),
        ("Allocated", bytes_text(figures.allocated_bytes), f"in {blocks} blocks"),
        ("Peak live", bytes_text(figures.peak_live_bytes), f"{bytes_text(figures.live_bytes_after)} at end"),
    ]
    if figures.peak_anonymous_bytes:
        found.append(("Peak RSS", bytes_text(figures.peak_anonymous_bytes), "anonymous memory"))
    if lives:
        p90 = f"90 % live at most {time_text(lives['p90'])}"
        found.append(("Median lifetime", time_text(lives["p50"]), p90))
    elsewhere = f"{share_text(figures.freed_elsewhere, 1.0)} of frees by another"
    return [*found, ("Threads", str(figures.threads), elsewhere)]


def shaded(rows: list[tuple[int, list[int]]]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Each size's blocks, with their shades in percent: logarithmic, as counts differ by powers of ten."""
    most = math.log1p(max((count for _, blocks in rows for count in blocks), default=0)) or 1.0
    return [
        (size, [(count, round(SHADE * math.log1p(count) / most)) for count in blocks])
        for size, blocks in rows
    ]
