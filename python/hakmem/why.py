"""Why is RSS this high?  Lines that add up to RSS, each with what could be done, and a verdict in words.

The process runs on while it is read, so one look may catch it between two states.  A few looks are taken,
and the one during which it changed least counts.  How much it changed is told."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from hakmem.errors import HakmemError
from hakmem.mappings import Outside, classify, stack_pointers
from hakmem.pages import PAGE_BYTES, PageMap, core_page_map, read_page_map
from hakmem.process import DetailedMapping, Mapping, Process
from hakmem.residency import ClassResidency, Reading, Residency, measure, read
from hakmem.sizes import bytes_text, share_text
from hakmem.structures import Window
from hakmem.target import Target

LOOKS_MAX = 5
LOOKING_MAX_S = 3.0
STEADY_SHARE = 0.001
STEADY_BYTES = 16 * PAGE_BYTES
PAUSE_S = 0.02
MENTION_SHARE = 0.1  # of RSS: parts from here on are named in the verdict
MOSTLY_LIVE_SHARE = 0.75
DETAILS_SHOWN = 5

LIVE, ROUNDING, FREE, CACHED = (
    "live data",
    "rounding inside blocks",
    "free blocks in used slabs",
    "magazines and outboxes",
)
POOL, RANGES_CACHED, RANGES_FREE = (
    "slabs EMPTY or UNUSED",
    "cached Large and Big blocks",
    "free ranges waiting for purge",
)
HUGE, METADATA = "huge-page fill", "hakmem's metadata"

# Of each line: what it is, and what could be done about it.
ADVICE = {
    LIVE: (
        "What the program asked for and has not freed.",
        "A heap profiler of the program tells who allocated it.",
    ),
    ROUNDING: (
        "Requests are rounded up to the next size class; sizes just above a class cost most.",
        "hak_good_size() tells what a request really takes.",
    ),
    FREE: (
        "Freed blocks that lie between live ones, reused by the next requests of their class.",
        "It shrinks when the live neighbours go; long-lived data allocated apart from short-lived data avoids it.",
    ),
    CACHED: (
        "Free blocks that threads keep for themselves; given back when the thread allocates again or ends.",
        "Fewer threads, or threads that end when idle, keep less.",
    ),
    POOL: (
        "Wholly free slabs, kept for reuse until they are HAKMEM_DECAY_MS old.",
        "Lower HAKMEM_DECAY_MS or HAKMEM_SUPERSLAB_KEEP, call hak_purge(true), or let the helper thread run "
        "(HAKMEM_HELPER_THREAD=1).",
    ),
    RANGES_CACHED: (
        "Freed Large and Big blocks, kept whole for the same call site.",
        "Lower HAKMEM_BIG_CACHE_BYTES or HAKMEM_DECAY_MS, or call hak_purge(true).",
    ),
    RANGES_FREE: (
        "Freed memory above 32 KiB that goes back when it is HAKMEM_DECAY_MS old.",
        "Lower HAKMEM_DECAY_MS or HAKMEM_BIG_CACHE_BYTES, or call hak_purge(true).",
    ),
    HUGE: (
        "Never used, but resident because the kernel hands out 2 MiB at a time.",
        "Set /sys/kernel/mm/transparent_hugepage/enabled to madvise and leave HAKMEM_THP=0.",
    ),
    METADATA: (
        "Records of slabs, ranges and threads, the library's own data; never given back.",
        "Fewer threads at a time need fewer records.",
    ),
    Outside.STACKS: (
        "Each thread's stack keeps the pages of its deepest call.",
        "Fewer threads, or less deep ones.",
    ),
    Outside.OTHER_MALLOC: (
        "Another malloc than hakmem: the C library's own before hakmem was loaded, or a bundled one.",
        "`hakmem doctor -- CMD` tells which programs keep their own.",
    ),
    Outside.FILES: (
        "Programs, libraries and mapped files, mostly shared with other processes.",
        "The kernel takes clean pages back when memory is short.",
    ),
    Outside.SHARED: (
        "Shared memory (tmpfs, memfd, SysV), counted in each process that touches it.",
        "It is the program's own: its configuration says how much.",
    ),
    Outside.ANONYMOUS: (
        "Mapped by the program or its libraries themselves, past malloc: language runtimes, JITs, arenas.",
        "Their own settings decide; for CPython's arenas PYTHONMALLOC=malloc brings them to hakmem.",
    ),
}


def advice(name: str) -> str:
    """What a line is and what could be done, in words."""
    return " ".join(ADVICE[name])


@dataclass
class Line:
    """One part of RSS."""

    name: str
    bytes: int
    exact: bool
    advice: str
    details: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Explanation:
    """All of RSS, in lines that add up to it."""

    pid: int
    command: list[str]
    version: str
    rss_bytes: int
    lines: list[Line]  # largest first
    verdict: str
    swap_bytes: int = 0
    not_resident_live_bytes: int = 0
    changed_bytes: int = 0  # how much RSS moved while it was read
    looks: int = 1
    is_core: bool = False
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The keys are the fields' names."""
        return asdict(self)


@dataclass
class Look:
    """What one look at the process saw."""

    reading: Reading
    residency: Residency
    outside: dict[Outside, int]
    library_bytes: int
    rss_bytes: int
    swap_bytes: int
    changed_bytes: int

    @property
    def is_steady(self) -> bool:
        return self.changed_bytes <= max(STEADY_BYTES, int(self.rss_bytes * STEADY_SHARE))


def explain(target: Target) -> Explanation:
    """Looks into a process, or a core, and explains its RSS."""
    if target.process is None:
        return explain_core(target)
    looks = [look_at(target, target.process)]
    until_s = time.monotonic() + LOOKING_MAX_S
    while not looks[-1].is_steady and len(looks) < LOOKS_MAX and time.monotonic() < until_s:
        time.sleep(PAUSE_S)
        looks.append(look_at(target, target.process))
    best = min(looks, key=lambda look: look.changed_bytes)
    return explanation(target, best, len(looks), thread_names(target.process))


def thread_names(process: Process) -> dict[int, str]:
    """Names for the details; nothing depends on them."""
    try:
        return process.thread_names()
    except HakmemError:
        return {}


# ---- one look ---------------------------------------------------------------------------------------------


def look_at(target: Target, process: Process) -> Look:
    """Mappings, pages and structures, one directly after the other; RSS again at the end."""
    try:
        return read_look(target, process)
    finally:
        target.check_same()  # it ended: that is the better answer


def read_look(target: Target, process: Process) -> Look:
    """The steps of a look."""
    window = Window(target.memory, target.schema)
    begin, end = window.base, window.base + window.granule_count * window.granule_bytes
    mappings = process.smaps()
    pages = read_page_map(process, begin, end, [(m.mapping.start, m.mapping.end) for m in mappings])
    reading = read(target)
    later_rss_bytes = process.smaps_rollup().get("Rss", 0)
    rss_bytes = sum(mapping.rss_bytes for mapping in mappings)
    residency = measure(reading, pages, foreign_chunks(reading.window, mappings))
    outside, library_bytes, in_window = split_outside(target, mappings, pages)
    torn_bytes = abs(in_window - residency.accounted_bytes)
    return Look(
        reading=reading, residency=residency, outside=outside, library_bytes=library_bytes, rss_bytes=rss_bytes,
        swap_bytes=sum(mapping.figures.get("Swap", 0) for mapping in mappings),
        changed_bytes=abs(later_rss_bytes - rss_bytes) + torn_bytes,
    )  # fmt: skip


def foreign_chunks(window: Window, mappings: Sequence[DetailedMapping]) -> np.ndarray[Any, Any]:
    """Chunks that a named mapping covers: hakmem's have no name."""
    foreign = np.zeros(len(window.chunk_map), bool)
    for item in mappings:
        if item.mapping.path:
            first = (item.mapping.start - window.base) // window.chunk_bytes
            last = -(-(item.mapping.end - window.base) // window.chunk_bytes)
            foreign[max(0, first) : max(0, last)] = True
    return foreign


def split_outside(
    target: Target, mappings: Sequence[DetailedMapping], pages: PageMap
) -> tuple[dict[Outside, int], int, int]:
    """Resident bytes outside the window by kind, those of hakmem's own maps and data, and those inside."""
    kinds = classify([item.mapping for item in mappings], is_library, stack_pointers(target.pid))
    maps = map_addresses(target)
    outside: dict[Outside, int] = {}
    library_bytes = in_window = 0
    for item, kind in zip(mappings, kinds, strict=True):
        inside = inside_bytes(item, pages)
        in_window += inside
        rest = item.rss_bytes - inside
        if kind is Outside.LIBRARY or any(item.mapping.start <= at < item.mapping.end for at in maps):
            library_bytes += rest
        else:
            outside[kind] = outside.get(kind, 0) + rest
    return outside, library_bytes, in_window


def inside_bytes(item: DetailedMapping, pages: PageMap) -> int:
    """The part of a mapping's RSS that lies in the window; of a mapping at its border as pagemap told."""
    low, high = max(item.mapping.start, pages.begin), min(item.mapping.end, pages.end)
    if low >= high:
        return 0
    if (low, high) == (item.mapping.start, item.mapping.end):
        return item.rss_bytes
    resident = pages.resident_between(np.array([low], np.uint64), np.array([high], np.uint64))
    return min(item.rss_bytes, int(resident[0]))


def map_addresses(target: Target) -> tuple[int, int]:
    """An address in the owner map and one in the chunk map."""
    record = target.memory.array(target.schema.root("window"), target.schema.dtype("window"), 1)[0]
    return int(record["owner_map"]), int(record["chunk_map_end"]) - 1


def is_library(mapping: Mapping) -> bool:
    """The library's own data; its code counts with the files."""
    return mapping.file_name.startswith("libhakmem") and "w" in mapping.permissions


# ---- lines --------------------------------------------------------------------------------------------------


def explanation(target: Target, look: Look, looks: int, names: dict[int, str]) -> Explanation:
    """What a look means."""
    residency = look.residency
    lines = sorted(all_lines(look, names), key=lambda line: -line.bytes)
    result = Explanation(
        pid=target.pid, command=target.command, version=target.schema.version, rss_bytes=look.rss_bytes,
        lines=lines, verdict=verdict(lines, look.rss_bytes, residency), swap_bytes=look.swap_bytes,
        not_resident_live_bytes=residency.not_resident_live_bytes, changed_bytes=look.changed_bytes, looks=looks,
    )  # fmt: skip
    if not look.is_steady:
        result.notes.append(
            f"The process changed while it was read: by {bytes_text(look.changed_bytes)} in the steadiest of "
            f"{looks} looks. The lines are off by about that much."
        )
    if look.swap_bytes:
        result.notes.append(f"{bytes_text(look.swap_bytes)} more are swapped out; they are no part of RSS.")
    return result


def all_lines(look: Look, names: dict[int, str]) -> list[Line]:
    """hakmem's parts and the others; those without a byte are left out."""
    return [line for line in [*own_lines(look, names), *other_lines(look)] if line.bytes]


def own_lines(look: Look, names: dict[int, str]) -> list[Line]:
    """What lies in hakmem's window."""
    residency = look.residency
    return [
        Line(LIVE, residency.requested_bytes, False, advice(LIVE), live_details(residency)),
        Line(ROUNDING, residency.live_bytes - residency.requested_bytes, False, advice(ROUNDING), rounding_details(residency)),
        Line(FREE, residency.free_block_bytes, True, advice(FREE), free_details(residency)),
        Line(CACHED, residency.cached_bytes, True, advice(CACHED), thread_details(look, names)),
        Line(POOL, residency.pool_bytes, True, advice(POOL), pool_details(residency)),
        Line(RANGES_CACHED, residency.range_cached_bytes, True, advice(RANGES_CACHED)),
        Line(RANGES_FREE, residency.range_free_bytes, True, advice(RANGES_FREE)),
        Line(HUGE, residency.huge_fill_bytes, False, advice(HUGE)),
        Line(METADATA, residency.metadata_bytes + look.library_bytes, True, advice(METADATA)),
    ]  # fmt: skip


def other_lines(look: Look) -> list[Line]:
    """What is not hakmem's.  Stacks are told by their guard pages, which others may have too."""
    sums = dict(look.outside)
    sums[Outside.ANONYMOUS] = sums.get(Outside.ANONYMOUS, 0) + look.residency.foreign_bytes
    return [Line(kind.value, sums[kind], kind is not Outside.STACKS, advice(kind)) for kind in sums]


def by_bytes(classes: Sequence[ClassResidency], name: str) -> list[ClassResidency]:
    """The classes with most of something."""
    return sorted(
        (item for item in classes if getattr(item, name) > 0), key=lambda item: -getattr(item, name)
    )


def live_details(residency: Residency) -> list[dict[str, Any]]:
    """Live bytes by class."""
    details = [
        {"block_bytes": item.block_bytes, "bytes": item.requested_bytes, "live_blocks": item.live_blocks}
        for item in by_bytes(residency.classes, "requested_bytes")
    ]
    if residency.big_live_bytes:
        details.append({"block_bytes": None, "bytes": residency.big_live_bytes})
    return sorted(details, key=lambda detail: -detail["bytes"])


def rounding_details(residency: Residency) -> list[dict[str, Any]]:
    """What rounding costs by class."""
    return [
        {
            "block_bytes": item.block_bytes,
            "bytes": item.rounding_bytes,
            "mean_request_bytes": round(item.mean_request_bytes or item.block_bytes, 1),
        }
        for item in by_bytes(residency.classes, "rounding_bytes")
    ]


def free_details(residency: Residency) -> list[dict[str, Any]]:
    """Free blocks by class, with how sparse its slabs are."""
    return [
        {
            "block_bytes": item.block_bytes,
            "bytes": item.free_bytes,
            "slabs": item.slabs,
            "live_blocks_per_slab": round(item.live_blocks / item.slabs, 1),
            "capacity_blocks_per_slab": round(item.capacity_blocks / item.slabs, 1),
        }
        for item in by_bytes(residency.classes, "free_bytes")
    ]


def thread_details(look: Look, names: dict[int, str]) -> list[dict[str, Any]]:
    """Cached bytes by thread."""
    schema = look.reading.schema
    ended = schema.constants.get("owner_parked")
    return [
        {
            "thread_id": heap.thread_id,
            "name": names.get(heap.thread_id, "ended" if heap.state == ended else ""),
            "heap": heap.number,
            "bytes": heap.bytes,
        }
        for heap in sorted(look.residency.heaps, key=lambda heap: -heap.bytes)
        if heap.bytes
    ]


def pool_details(residency: Residency) -> list[dict[str, Any]]:
    """The three kinds of unused slabs."""
    kinds = (
        ("EMPTY, kept for their class", residency.empty_slab_bytes),
        ("UNUSED, in SuperSlabs in use", residency.unused_slab_bytes),
        ("wholly free SuperSlabs", residency.kept_superslab_bytes),
    )
    return [{"kind": kind, "bytes": count} for kind, count in kinds if count]


# ---- the verdict -----------------------------------------------------------------------------------------------


def verdict(lines: Sequence[Line], rss_bytes: int, residency: Residency) -> str:
    """One or two sentences: how much is live, what the rest is, what to do first."""
    if not rss_bytes:
        return "Nothing is resident."
    sizes = {line.name: line.bytes for line in lines}
    live_share = sizes.get(LIVE, 0) / rss_bytes
    others = [line for line in lines if line.name != LIVE and line.bytes >= MENTION_SHARE * rss_bytes]
    first = f"{share_text(sizes.get(LIVE, 0), rss_bytes)} of RSS is live data of the program"
    if not others:
        own = sum(
            sizes.get(name, 0) for name in (ROUNDING, FREE, CACHED, POOL, RANGES_CACHED, RANGES_FREE, HUGE)
        )
        return f"{first}; hakmem holds {share_text(own, rss_bytes)} beyond it, nothing stands out."
    parts = ", ".join(f"{line.name} {share_text(line.bytes, rss_bytes)}" for line in others)
    top = others[0]
    if live_share >= MOSTLY_LIVE_SHARE:
        return f"{first}; the rest is mostly {parts}."
    return f"{first}; besides: {parts}.{cause(top, residency)} {action(top)}"


def action(line: Line) -> str:
    """What could be done about a line."""
    return next((do for name, (_, do) in ADVICE.items() if name == line.name), "")


def cause(line: Line, residency: Residency) -> str:
    """What is particular about the largest part."""
    if line.name == FREE and line.details:
        worst = line.details[0]
        full = share_text(worst["live_blocks_per_slab"], worst["capacity_blocks_per_slab"])
        return (
            f" Most of the free blocks are of {bytes_text(worst['block_bytes'])}: their {worst['slabs']} slabs are "
            f"{full} live."
        )
    if line.name == CACHED and line.details:
        top = line.details[0]
        holders = sum(1 for heap in residency.heaps if heap.bytes)
        return f" {holders} threads keep them, the largest {bytes_text(top['bytes'])}."
    return ""


# ---- cores ------------------------------------------------------------------------------------------------------


def explain_core(target: Target) -> Explanation:
    """The window's part only.  A core does not tell what was resident: pages of zeros, which include those
    never touched, are taken for absent."""
    window = Window(target.memory, target.schema)
    end = window.base + window.granule_count * window.granule_bytes
    reading = read(target)
    pages = core_page_map(target.memory, window.base, end)
    residency = measure(reading, pages)
    look = Look(reading, residency, {}, 0, residency.accounted_bytes, 0, 0)
    lines = sorted(own_lines(look, {}), key=lambda line: -line.bytes)
    for line in lines:
        line.exact = False
    shown = [line for line in lines if line.bytes]
    return Explanation(
        pid=target.pid, command=target.command, version=target.schema.version, rss_bytes=look.rss_bytes,
        lines=shown, verdict=verdict(shown, look.rss_bytes, residency), is_core=True,
        not_resident_live_bytes=residency.not_resident_live_bytes,
        notes=[
            "From a core: it does not tell which pages were resident. Pages that hold anything but zeros are taken "
            "for resident, so all figures are estimates.",
            "Not known from a core: stacks, files, shared memory and other mappings; the lines add up to hakmem's "
            "part only.",
        ],
    )  # fmt: skip
