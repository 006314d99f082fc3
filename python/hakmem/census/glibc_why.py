"""RSS of a process on glibc's malloc, in lines that add up to it."""

from __future__ import annotations

from bisect import bisect_left

from hakmem.base.sizes import bytes_text, counted, share_text
from hakmem.census.catalogue import LINES
from hakmem.census.explanation import CORE_NOTES, Explanation
from hakmem.census.lines import Detail, Line, sorted_lines
from hakmem.census.on_hakmem import ACCURACY_SHARE, chunk_words, on_hakmem_bytes
from hakmem.census.scan import kinds_of, steadiest
from hakmem.target.glibc import HEADER_BYTES, MEAN_ROUNDING_BYTES, GlibcHeap, block_file, walk
from hakmem.target.mappings import Outside
from hakmem.target.process import DetailedMapping, Process, kib
from hakmem.target.target import Target, making_sense

MENTION_SHARE = 0.1
EXPLAINED_SHARE = 0.99
ARENAS_SHARE = 0.3  # of the heap's bytes in arenas beside the main one: they are a cause

LIVE, ROUNDING = "live data", "rounding and headers"
PINNED, WHOLE, TOP = "free chunks, pinned", "free chunks, whole pages", "top of the arenas"
CACHED, RECORDS = "thread caches and fastbins", "records and unused tails"
ADVICE = {
    LIVE: "Memory that the program holds. `hakmem what` shows its content; its call sites are known on "
    "hakmem only.",
    ROUNDING: "Each chunk has a header of 8 bytes, and is a multiple of 16. Fewer, larger blocks have less.",
    PINNED: "Freed, but on pages with live chunks: malloc_trim returns none of it. It is used for new "
    "requests that fit, and goes when its neighbours are freed: allocate long-lived data apart.",
    WHOLE: "malloc_trim(0) returns it. glibc does so by itself only at the heap's end.",
    TOP: "Unused memory at the heap's end, returned when it exceeds M_TRIM_THRESHOLD, which grows with the "
    "largest chunk freed; setting it fixes it.",
    CACHED: "Freed chunks kept for the same size: seven (sixteen since glibc 2.42) of each in every thread.",
    RECORDS: "The arenas' own records, and pages beyond the end of their heaps.",
}


def explain_glibc(target: Target, process: Process | None) -> Explanation:
    """The same as for hakmem, from a walk over glibc's chunks."""
    best, scans, changed = steadiest(lambda: explained(target, process))
    best.scans, best.notes = scans, [*changed, *best.notes]
    return best


def explained(target: Target, process: Process | None) -> Explanation:
    """One reading."""
    with making_sense(target):
        mappings = process.smaps() if process else []
        with block_file() as file:
            heap, words = walk(target, file), chunk_words(file)
        later_bytes = process.smaps_rollup().get("Rss", 0) if process else 0
    rss_bytes = sum(one.rss_bytes for one in mappings)
    own = own_lines(heap)
    others = other_lines(target, heap, mappings, sum(one.bytes for one in own))
    lines = sorted_lines([*own, *others])
    with making_sense(target):
        bounds = on_hakmem_bytes(heap, words, target.memory, risen_bytes(heap, process, rss_bytes))
    other_bytes = sum(line.bytes for line in others)
    if process is None:
        rss_bytes = sum(line.bytes for line in lines)
    made = Explanation(
        pid=target.pid,
        command=target.command,
        version=target.version,
        rss_bytes=rss_bytes,
        lines=lines,
        verdict=verdict(heap, lines, rss_bytes, hakmem_text(*(other_bytes + one for one in bounds))),
        swap_bytes=sum(one.figures.get("Swap", 0) for one in mappings),
        huge_bytes=sum(one.figures.get("AnonHugePages", 0) for one in mappings),
        purgeable_bytes=heap.resident("free_whole"),
        changed_bytes=abs(later_bytes - rss_bytes) if process else 0,
        is_core=process is None,
        malloc=target.malloc,
        broken=heap.broken,
    )
    made.notes = [*notes(heap), *([] if process else CORE_NOTES)]
    return made


# ---- lines -----------------------------------------------------------------------------------------


def own_lines(heap: GlibcHeap) -> list[Line]:
    live_bytes = heap.resident("live") + heap.mmapped_resident
    chunks = heap.sum("live_chunks")
    share = min(1.0, heap.resident("live") / max(heap.sum("live_bytes"), 1))
    lost_bytes = int(chunks * (HEADER_BYTES + MEAN_ROUNDING_BYTES) * share)
    parts = [
        (LIVE, live_bytes - lost_bytes, False, size_details(heap)),
        (ROUNDING, lost_bytes, False, []),
        (PINNED, heap.resident("free_pinned"), True, arena_details(heap, "free_pinned")),
        (WHOLE, heap.resident("free_whole"), True, arena_details(heap, "free_whole")),
        (TOP, heap.resident("top"), True, arena_details(heap, "top")),
        (CACHED, heap.resident("cached"), True, []),
        (RECORDS, heap.resident("headers") + heap.resident("unused_tail"), True, []),
    ]
    return [Line(name, count, exact, ADVICE[name], details) for name, count, exact, details in parts]


def size_details(heap: GlibcHeap) -> list[Detail]:
    """Live chunks by size, and those with mappings of their own."""
    found: list[Detail] = [
        {"block_bytes": size, "bytes": size * live, "live_blocks": live}
        for size, live in heap.live_blocks.items()
    ]
    if heap.mmapped_chunks:
        text = f"{counted(heap.mmapped_chunks, 'block')} with a mapping of its own"
        found.append({"kind": text, "bytes": heap.mmapped_resident})
    return sorted(found, key=lambda detail: -detail["bytes"])


def arena_details(heap: GlibcHeap, name: str) -> list[Detail]:
    found: list[Detail] = []
    for number, arena in enumerate(heap.arenas):
        users = counted(arena.threads, "thread") if arena.threads else "no thread any more"
        kind = "main arena" if arena.is_main else f"arena {number}, {users}"
        found.append({"kind": kind, "bytes": getattr(arena.resident, name)})
    return sorted((one for one in found if one["bytes"]), key=lambda detail: -detail["bytes"])


def other_lines(
    target: Target, heap: GlibcHeap, mappings: list[DetailedMapping], own_bytes: int
) -> list[Line]:
    """All that is not malloc's; mappings that malloc has made are of two kinds, and taken off their sum."""
    begins = sorted(part.begin for arena in heap.arenas for part in arena.heaps)
    chunks = sorted((one.address, one.resident) for one in heap.mmapped)
    sums: dict[Outside, int] = {}
    for item, kind in zip(mappings, kinds_of(target, mappings), strict=True):
        start, end = item.mapping.start, item.mapping.end
        # The end of one heap may look like the guard of the stack that the next one seems to be, and
        # the kernel merges a stack with chunks beside it.
        is_heap = bisect_left(begins, start) < bisect_left(begins, end)
        inside = chunks[bisect_left(chunks, (start, 0)) : bisect_left(chunks, (end, 0))]
        chosen = Outside.OTHER_MALLOC if is_heap else kind
        moved = sum(resident for _, resident in inside) if chosen is Outside.STACKS else 0
        sums[chosen] = sums.get(chosen, 0) + item.rss_bytes - moved
        sums[Outside.OTHER_MALLOC] = sums.get(Outside.OTHER_MALLOC, 0) + moved
    if mappings:
        rest = sums.pop(Outside.OTHER_MALLOC, 0) + sums.get(Outside.ANONYMOUS, 0) - own_bytes
        sums[Outside.ANONYMOUS] = max(0, rest)
    return [
        Line(kind.value, count, kind not in (Outside.STACKS, Outside.ANONYMOUS), LINES[kind.value].explained)
        for kind, count in sums.items()
    ]


# ---- verdict ---------------------------------------------------------------------------------------


def verdict(heap: GlibcHeap, lines: list[Line], rss_bytes: int, on_hakmem: str) -> str:
    """Leak, fragmentation or arenas, and the remedy."""
    if heap.broken:
        return heap.damage_text
    sizes = {line.name: line.bytes for line in lines}
    live_bytes = sizes.get(LIVE, 0) + sizes.get(ROUNDING, 0)
    first = f"{share_text(live_bytes, rss_bytes)} of RSS is live data of the program"
    said = [first, *causes(heap, sizes, rss_bytes)]
    if len(said) == 1:
        others = [line for line in lines if line.name not in ADVICE and line.bytes >= rss_bytes / 2]
        beside = "".join(f" {share_text(line.bytes, rss_bytes)} is {line.name}, and" for line in others)
        said = [f"{first};{beside} malloc's overhead is small"]
    return ". ".join([*said, on_hakmem]) + "."


def causes(heap: GlibcHeap, sizes: dict[str, int], rss_bytes: int) -> list[str]:
    said = []
    pinned, whole, top = (sizes.get(name, 0) for name in (PINNED, WHOLE, TOP))
    if pinned >= MENTION_SHARE * rss_bytes:
        said.append(
            f"Fragmentation: {bytes_text(pinned)} are free between live chunks, of which malloc_trim returns "
            "nothing"
        )
    if whole >= MENTION_SHARE * rss_bytes:
        said.append(f"{bytes_text(whole)} are free in whole pages: malloc_trim(0) returns them")
    if heap.sum("top_bytes") >= max((whole + top) / 2, MENTION_SHARE * rss_bytes):
        said.append("M_TRIM_THRESHOLD or MALLOC_TRIM_THRESHOLD_ keeps the top of the arenas small")
    beside = [arena for arena in heap.arenas if not arena.is_main]
    free_beside = sum(arena.resident.bytes - arena.resident.live for arena in beside)
    if free_beside >= ARENAS_SHARE * rss_bytes:
        idle = sum(not arena.threads for arena in beside)
        ended = f", {idle} of them without a thread" if idle else ""
        said.append(
            f"{counted(len(heap.arenas), 'arena')}{ended}: {bytes_text(free_beside)} are free in those of "
            "threads; MALLOC_ARENA_MAX=2 keeps their number small"
        )
    return said


def risen_bytes(heap: GlibcHeap, process: Process | None, rss_bytes: int) -> int | None:
    """RSS at its peak, above RSS now; None where hakmem's helper thread would give free memory back."""
    if process is None or len(heap.arenas) > 1 or process.figures().threads > 1:
        return None
    return max(0, kib(process.status().get("VmHWM")) - rss_bytes)


def hakmem_text(least: int, most: int) -> str:
    said = f"On hakmem RSS would be about {bytes_text(least)} (±{100 * ACCURACY_SHARE:.0f} %)"
    if most > least * (1 + ACCURACY_SHARE):
        said += (
            f", and up to {bytes_text(most)} for as long as the process sleeps after it has freed: free "
            "memory goes back by age, in calls of malloc"
        )
    return said


def notes(heap: GlibcHeap) -> list[str]:
    made = []
    if heap.explained_share < EXPLAINED_SHARE:
        made.append(
            f"Only {heap.explained_share:.1%} of the heap could be explained: it changed while it was read, "
            "or is broken."
        )
    return made
