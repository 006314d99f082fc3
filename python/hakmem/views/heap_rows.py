"""Heaps that the program has made or named, as rows of a table."""

from __future__ import annotations

from hakmem.base.sizes import count_text, share_text
from hakmem.census.heap_figures import NamedHeapFigures, label
from hakmem.views.cells import Cell, Row, number, size

HEAP_COLUMNS = (
    *("<heap", "tag", "live", "share", "blocks", "peak", "limit", "used", "refused", "threads"),
    "<of",
)
NOTHING = Cell("", -1.0)


def heap_row(heap: NamedHeapFigures, whole_bytes: int) -> Row:
    """`whole_bytes`: live ones in the process.  Fields that a heap lacks are left out, as most have neither
    tag nor limit, and are in use by no thread."""
    limit, name = heap.limit_bytes, label(heap)
    of = f"thread {heap.thread_id or '–'}" if heap.kind == "thread" else heap.kind
    return [
        Cell(name, name),
        Cell(str(heap.tag), heap.tag) if heap.tag else NOTHING,
        size(heap.live_bytes),
        Cell(share_text(heap.live_bytes, whole_bytes), heap.live_bytes),
        number(heap.live_blocks),
        size(heap.peak_bytes),
        size(limit) if limit else NOTHING,
        Cell(share_text(heap.live_bytes, limit), heap.live_bytes / limit) if limit else NOTHING,
        Cell(count_text(heap.refusals), heap.refusals) if heap.refusals else NOTHING,
        Cell(str(heap.threads), heap.threads) if heap.threads else NOTHING,
        Cell(of, of),
    ]
