"""The part of a recording's page about the program's own heaps: their bytes over time, and how many
threads used them."""

from __future__ import annotations

from collections.abc import Sequence

from hakmem.base.sizes import bytes_text, count_text
from hakmem.census.figures import Snapshot
from hakmem.census.heap_figures import REST_NAME, Series, quoted
from hakmem.views import charts

HEAPS_DRAWN = 8
REST: Series = (REST_NAME, "", "")
Held = Sequence[dict[Series, int] | None]  # bytes, or threads, by sample


def heap_charts(times_s: Sequence[float], samples: Sequence[Snapshot]) -> list[charts.Chart]:
    return [*held_charts(times_s, samples), *thread_charts(times_s, samples)]


def held_charts(times_s: Sequence[float], samples: Sequence[Snapshot]) -> list[charts.Chart]:
    """None for a program without heaps.  Of full snapshots only: the others count blocks that another thread
    has freed and the heap has not collected yet, so a line through both would go up and down by itself."""
    held = [held_by(sample) if sample.detail == "full" else None for sample in samples]
    drawn = largest(held)[:HEAPS_DRAWN]
    if not drawn:
        return []
    chart = charts.Chart(
        "heaps",
        "Live bytes by heap of the program",
        f"Bytes held by the {HEAPS_DRAWN} largest heaps that the program made, rounding included; those of "
        "one name and tag are one area. They are part of the live blocks: the rest of those is malloc's. "
        "A thread's heap with a name includes the blocks that it keeps for reuse. A heap that grows as "
        "long as the program runs deserves the first look.",
        times_s,
        [*(line(label(series), held, [series]) for series in drawn), *rest(held, drawn)],
        bytes_text,
        True,
        True,
    )
    return [chart]


def thread_charts(times_s: Sequence[float], samples: Sequence[Snapshot]) -> list[charts.Chart]:
    """None where no heap was in use."""
    used = [used_by(sample) for sample in samples]
    drawn = largest(used)[:HEAPS_DRAWN]
    if not drawn:
        return []
    chart = charts.Chart(
        "heap-threads",
        "Threads by heap in use",
        "How many threads' malloc gave blocks of a heap of the program (hak_heap_use), for the "
        f"{HEAPS_DRAWN} heaps with most; those of one name and tag are one line. While another thread uses "
        "a heap it cannot be destroyed.",
        times_s,
        [line(label(series), used, [series]) for series in drawn],
        count_text,
    )
    return [chart]


def used_by(sample: Snapshot) -> dict[Series, int]:
    """Threads; heaps that the recording has summed up have no line."""
    found: dict[Series, int] = {}
    for heap in sample.heaps:
        if heap.threads is not None and not heap.is_rest:
            found[heap.series] = found.get(heap.series, 0) + heap.threads
    return found


def held_by(sample: Snapshot) -> dict[Series, int]:
    """Live bytes; heaps that the recording has summed up are one."""
    found: dict[Series, int] = {}
    for heap in sample.heaps:
        series = REST if heap.is_rest else heap.series
        found[series] = found.get(series, 0) + heap.live_bytes
    return found


def largest(held: Held) -> list[Series]:
    """The heaps that held, or had, most at any time."""
    most: dict[Series, int] = {}
    for found in filter(None, held):
        most |= {series: max(most.get(series, 0), live_bytes) for series, live_bytes in found.items()}
    return sorted((one for one in most if most[one] and one != REST), key=lambda one: (-most[one], one))


def line(name: str, held: Held, of: Sequence[Series]) -> charts.Series:
    values = [None if found is None else sum(found.get(series, 0) for series in of) for found in held]
    return charts.Series(name, values)


def rest(held: Held, drawn: Sequence[Series]) -> list[charts.Series]:
    """All others as one, if they held anything."""
    others = {series for found in held for series in found or ()} - set(drawn)
    found = line(REST_NAME, held, sorted(others))
    return [found] if any(found.values) else []


def label(series: Series) -> str:
    """“cache” (tag 7)"""
    name, tag, kind = series
    more = [f"tag {tag}" if tag != "0" else "", kind if kind != "program" else ""]
    said = ", ".join(filter(None, more))
    return quoted(name) + (f" ({said})" if said else "")
