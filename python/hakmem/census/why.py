"""Explains RSS: lines that add up to it, each with what reduces it, and a verdict.

The process keeps running while it is read, so one scan may catch it between two states.  It is scanned a few
times; the scan during which it changed least counts.  How much it changed is reported."""

from __future__ import annotations

from typing import Any

from hakmem.base.errors import HakmemError
from hakmem.base.sizes import bytes_text, counted, share_text
from hakmem.census.explanation import CORE_NOTES, Explanation
from hakmem.census.heap_figures import NamedHeapFigures, heap_text, limits_of_heaps
from hakmem.census.limits import limit_notes
from hakmem.census.lines import Line, by_bytes, other_lines, own_lines, sorted_lines
from hakmem.census.scan import Scan, scan, scan_core, steadiest
from hakmem.census.snapshot import read_totals, take
from hakmem.census.verdict import verdict
from hakmem.target.process import Process
from hakmem.target.target import Target

HEAP_FIGURES = ("name", "tag", "live_bytes", "limit_bytes", "refusals", "threads")
HEAPS_NAMED, MENTION_SHARE, UNTOUCHED_SHARE = 3, 0.01, 0.05


def explain(target: Target) -> Explanation:
    if target.malloc == "glibc":
        from hakmem.census.glibc_why import explain_glibc

        return explain_glibc(target, target.process)
    if target.process is None:
        return explain_core(target)
    process = target.process
    best, scans, changed = steadiest(lambda: scan(target, process))
    lines = sorted_lines([*own_lines(best, thread_names(target.process)), *other_lines(best)])
    made = explanation(target, best, lines, verdict(lines, best.rss_bytes))
    made.scans = scans
    made.notes = [*changed, *notes(best)]
    return made


def explain_core(target: Target) -> Explanation:
    """hakmem's part, estimated."""
    found = scan_core(target)
    lines = own_lines(found, {})
    for line in lines:
        line.exact = False
    made = explanation(target, found, lines, verdict(lines, found.rss_bytes, "hakmem's memory"))
    made.is_core = True
    made.notes = CORE_NOTES
    return made


def explanation(target: Target, found: Scan, lines: list[Line], words: str) -> Explanation:
    limits = take(target, detail="counters").limits
    heaps, live_bytes = found.residency.named_figures, live_bytes_of(found)
    return Explanation(
        pid=target.pid,
        command=target.command,
        version=target.schema.version,
        rss_bytes=found.rss_bytes,
        lines=lines,
        verdict=words,
        swap_bytes=found.swap_bytes,
        huge_bytes=found.huge_bytes,
        not_resident_live_bytes=found.residency.not_resident_live_bytes,
        purgeable_bytes=found.residency.purgeable_bytes,
        movable_bytes=found.residency.movable_bytes,
        movable_classes={
            item.block_bytes: item.movable_bytes
            for item in by_bytes(found.residency.classes, "movable_bytes")
        },
        changed_bytes=found.changed_bytes,
        limits=limits,
        limit_notes=(limit_notes(limits) if limits else []) + limits_of_heaps(heaps),
        heaps=heap_shares(found, heaps, live_bytes),
        heaps_text=heaps_text(heaps, live_bytes),
    )


# ---- heaps that the program has made -------------------------------------------------------------------


def live_bytes_of(found: Scan) -> int:
    """The bytes of live blocks, resident or not."""
    totals = read_totals(found.reading)
    in_classes = sum(item.live_blocks * item.block_bytes for item in found.residency.classes)
    return in_classes + totals.get("big_live_bytes", 0)


def heap_shares(found: Scan, heaps: list[NamedHeapFigures], live_bytes: int) -> list[dict[str, Any]]:
    """With the share of all live bytes, and the resident bytes of the heap's slabs and ranges, free blocks
    included."""
    numbers = found.reading.named.numbers.tolist()
    resident = dict(zip(numbers, found.residency.named.tolist(), strict=True))
    return [
        {name: getattr(heap, name) for name in HEAP_FIGURES}
        | {"live_share": round(heap.live_bytes / live_bytes, 4) if live_bytes else 0.0}
        | {"resident_bytes": resident[heap.number]}
        for heap in heaps
        if heap.is_made
    ]


def heaps_text(heaps: list[NamedHeapFigures], live_bytes: int) -> str:
    """Which of them hold most of the live bytes; "" without heaps that hold any."""
    made = [heap for heap in heaps if heap.is_made and heap.live_bytes]
    if not made:
        return ""
    large = [heap for heap in made if heap.live_bytes >= MENTION_SHARE * live_bytes]
    named = (large or made[:1])[:HEAPS_NAMED]
    parts = []
    for heap in named:
        used = f"in use by {counted(heap.threads, 'thread')}" if heap.threads else ""
        share = share_text(heap.live_bytes, live_bytes)
        parts.append(f"{share} in {heap_text(heap.name, heap.tag, used)}")
    if rest := made[len(named) :]:
        held = sum(heap.live_bytes for heap in rest)
        parts.append(f"{share_text(held, live_bytes)} in {counted(len(rest), 'other heap')}")
    outside = max(0, live_bytes - sum(heap.live_bytes for heap in made))
    elsewhere = f"{share_text(outside, live_bytes)} in no heap of the program's"
    return f"Live bytes lie {', '.join(parts)}; {elsewhere}."


def notes(found: Scan) -> list[str]:
    made = []
    if found.huge_bytes:
        share = share_text(found.huge_bytes, found.rss_bytes)
        made.append(f"In huge pages: {bytes_text(found.huge_bytes)}, {share} of RSS.")
    if found.swap_bytes:
        made.append(f"Another {bytes_text(found.swap_bytes)} is swapped out, and not part of RSS.")
    if found.residency.not_resident_live_bytes >= UNTOUCHED_SHARE * found.residency.live_bytes:
        size = bytes_text(found.residency.not_resident_live_bytes)
        made.append(f"Another {size} of live blocks is not part of RSS: never touched, or swapped out.")
    return made


def thread_names(process: Process) -> dict[int, str]:
    """Thread names for the details; missing ones do no harm."""
    try:
        return process.thread_names()
    except HakmemError:
        return {}
