"""One scan of a process: everything that `why` needs, read as close to one moment as possible.

smaps, then the pages of hakmem's window, then its structures, then RSS again: the difference shows how much
the process changed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from hakmem.base.sizes import bytes_text, counted
from hakmem.census.reading import Reading, read_full
from hakmem.census.residency import Residency, measure
from hakmem.layout.memory import Flags
from hakmem.layout.structures import Window
from hakmem.target.mappings import Outside, classify
from hakmem.target.pages import PAGE_BYTES, PageMap, core_page_map, read_page_map
from hakmem.target.process import DetailedMapping, Process
from hakmem.target.target import Target, making_sense

STEADY_SHARE = 0.001
STEADY_BYTES = 16 * PAGE_BYTES
SCANS_MAX = 5
SCANNING_MAX_S = 3.0
PAUSE_S = 0.02


@dataclass
class Scan:
    reading: Reading
    residency: Residency
    outside: dict[Outside, int]
    library_bytes: int
    rss_bytes: int
    swap_bytes: int
    huge_bytes: int  # of RSS, in huge pages
    changed_bytes: int


class Changing(Protocol):
    """RSS, and how much it changed meanwhile."""

    rss_bytes: int
    changed_bytes: int


Kind = TypeVar("Kind", bound=Changing)


def is_steady(one: Changing) -> bool:
    return one.changed_bytes <= max(STEADY_BYTES, int(one.rss_bytes * STEADY_SHARE))


def steadiest(read: Callable[[], Kind]) -> tuple[Kind, int, list[str]]:
    """The reading during which the process changed least, the number of readings, and a note if it
    changed in each of them."""
    readings, until_s = [read()], time.monotonic() + SCANNING_MAX_S
    while not is_steady(readings[-1]) and len(readings) < SCANS_MAX and time.monotonic() < until_s:
        time.sleep(PAUSE_S)
        readings.append(read())
    best = min(readings, key=lambda one: one.changed_bytes)
    changed = (
        f"The process changed while it was read: by {bytes_text(best.changed_bytes)} in the steadiest of "
        f"{counted(len(readings), 'scan')}. The lines are off by about that much."
    )
    return best, len(readings), [] if is_steady(best) else [changed]


def scan(target: Target, process: Process) -> Scan:
    """Mappings, pages and structures in direct succession; RSS again at the end."""
    with making_sense(target):
        start, end = window_bounds(target)
        mappings = process.smaps()
        pages = read_page_map(process, start, end, [(m.mapping.start, m.mapping.end) for m in mappings])
        reading = read_full(target)
        later_rss_bytes = process.smaps_rollup().get("Rss", 0)
        assert reading.walk is not None
        residency = measure(reading, pages, foreign_chunks(reading.walk.window, mappings))
        outside, library_bytes, in_window = split_outside(target, mappings, pages)
    rss_bytes = sum(mapping.rss_bytes for mapping in mappings)
    torn_bytes = abs(in_window - residency.accounted_bytes)
    return Scan(
        reading=reading,
        residency=residency,
        outside=outside,
        library_bytes=library_bytes,
        rss_bytes=rss_bytes,
        swap_bytes=sum(mapping.figures.get("Swap", 0) for mapping in mappings),
        huge_bytes=sum(mapping.figures.get("AnonHugePages", 0) for mapping in mappings),
        changed_bytes=abs(later_rss_bytes - rss_bytes) + torn_bytes,
    )


def window_bounds(target: Target) -> tuple[int, int]:
    """The used part of the window."""
    window = Window(target.memory, target.schema)
    return window.base, window.base + window.granule_count * window.granule_bytes


def foreign_chunks(window: Window, mappings: Sequence[DetailedMapping]) -> Flags:
    """Chunks that a named mapping covers: hakmem's have no name."""
    foreign = np.zeros(len(window.chunk_map), bool)
    for item in mappings:
        if item.mapping.path:
            first = (item.mapping.start - window.base) // window.chunk_bytes
            last = -(-(item.mapping.end - window.base) // window.chunk_bytes)
            foreign[max(0, first) : max(0, last)] = True
    return foreign


def kinds_of(target: Target, mappings: Sequence[DetailedMapping]) -> list[Outside]:
    pointers = target.process.stack_pointers() if target.process else ()
    return classify([item.mapping for item in mappings], target.data_end, pointers)


def split_outside(
    target: Target, mappings: Sequence[DetailedMapping], pages: PageMap
) -> tuple[dict[Outside, int], int, int]:
    """Resident bytes outside the window by kind, of hakmem's own maps and data, and inside the window."""
    kinds = kinds_of(target, mappings)
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
    """The part of a mapping's RSS that lies in the window; by the page map where it crosses the border."""
    low, high = max(item.mapping.start, pages.start), min(item.mapping.end, pages.end)
    if low >= high:
        return 0
    if (low, high) == (item.mapping.start, item.mapping.end):
        return item.rss_bytes
    resident = pages.resident_between(np.array([low], np.uint64), np.array([high], np.uint64))
    return min(item.rss_bytes, int(resident[0]))


def map_addresses(target: Target) -> tuple[int, int]:
    """An address in the owner map and one in the chunk map."""
    record = target.schema.structure(target.memory, "window")
    return int(record["owner_map"]), int(record["chunk_map_end"]) - 1


def scan_core(target: Target) -> Scan:
    """The window only.  A core does not record residency: pages of zeros count as absent."""
    core = target.core
    assert core is not None
    with making_sense(target):
        start, end = window_bounds(target)
        residency = measure(reading := read_full(target), core_page_map(core, start, end, core.written))
    return Scan(reading, residency, {}, 0, residency.accounted_bytes, 0, 0, 0)
