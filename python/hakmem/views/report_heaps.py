"""The part of a recording's page about the program's own heaps: their bytes over time, and how many
threads used them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hakmem.base.sizes import bytes_text, count_text
from hakmem.census.figures import Snapshot
from hakmem.census.heap_figures import REST_NAME, Series, heap_text
from hakmem.views import charts
from hakmem.views.charts import Chart, largest

HEAPS_DRAWN = 8
REST: Series = (REST_NAME, "", "")
Held = Counter[Series]  # bytes, or threads


def heap_charts(times_s: Sequence[float], samples: Sequence[Snapshot]) -> list[Chart]:
    """None for a program without heaps, or without one in use.  Bytes are of full snapshots only: the others
    count blocks that another thread has freed and the heap has not collected yet, so a line through both
    would go up and down by itself."""
    held = [by_series(sample, "live_bytes") if sample.detail == "full" else None for sample in samples]
    used = [by_series(sample, "threads") for sample in samples]
    drawn = of_largest(held)
    others = {series for found in held for series in found or ()} - set(drawn)
    rest = line(REST_NAME, held, others)
    charts = [
        Chart(
            "heaps",
            "Live bytes by heap of the program",
            f"Bytes held by the {HEAPS_DRAWN} largest heaps that the program made, rounding included; those "
            "of one name and tag are one area. They are part of the live blocks: the rest of those is "
            "malloc's. A thread's heap with a name includes the blocks that it keeps for reuse. A heap that "
            "grows as long as the program runs deserves the first look.",
            times_s,
            [*lines_of(held, drawn), *([rest] if any(rest.values) else [])] if drawn else [],
            bytes_text,
            is_stacked=True,
        ),
        Chart(
            "heap-threads",
            "Threads by heap in use",
            "Number of threads whose malloc uses a heap of the program (hak_heap_use), for the "
            f"{HEAPS_DRAWN} heaps with most; those of one name and tag are one line. While another thread "
            "uses a heap it cannot be destroyed.",
            times_s,
            lines_of(used, of_largest(used)),
            count_text,
        ),
    ]
    return [chart for chart in charts if chart.series]


def by_series(sample: Snapshot, figure: str) -> Held:
    """Heaps that the recording has summed up are one."""
    found = Held()
    for heap in sample.heaps:
        found[REST if heap.is_rest else heap.series] += getattr(heap, figure) or 0
    return found


def of_largest(held: Sequence[Held | None]) -> list[Series]:
    known = [Held({one: value for one, value in found.items() if one != REST}) for found in held if found]
    return largest(known, HEAPS_DRAWN)


def lines_of(held: Sequence[Held | None], drawn: Sequence[Series]) -> list[charts.Series]:
    return [line(label(series), held, [series]) for series in drawn]


def line(name: str, held: Sequence[Held | None], of: Iterable[Series]) -> charts.Series:
    values = [None if found is None else sum(found[series] for series in of) for found in held]
    return charts.Series(name, values)


def label(series: Series) -> str:
    """“cache” (tag 7)"""
    name, tag, kind = series
    return heap_text(name, tag, kind if kind != "program" else "")
