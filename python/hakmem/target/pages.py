"""Which pages of part of a process's memory are resident.

Two sources: /proc/PID/pagemap (a word per page) and, on Linux 6.7 and later, its PAGEMAP_SCAN request, which
also identifies the shared zero page (not part of RSS)."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hakmem.base.errors import UnreadableError
from hakmem.layout.memory import Addresses, Flags, Integers, Memory, Numbers, Words
from hakmem.target.process import Process

PAGE_BYTES = mmap.PAGESIZE
REGION_BYTES = 1 << 21  # no chunk of the window is larger
REGION_PAGES = REGION_BYTES // PAGE_BYTES
REGIONS_AT_ONCE = 512
SMALL_BYTES = 64 << 20  # of these every page is looked at: that is quicker than to ask where there are any
PAGEMAP_ENTRY_BYTES = 8
PRESENT = np.uint64(1 << 63)
SWAPPED = np.uint64(1 << 62)

# linux/fs.h
PAGEMAP_SCAN = 0xC0606610
PAGE_IS_PRESENT, PAGE_IS_SWAPPED, PAGE_IS_PFNZERO = 1 << 3, 1 << 4, 1 << 5
HAS_PAGES = PAGE_IS_PRESENT | PAGE_IS_SWAPPED
SCAN_REGIONS = 4096
REGION_WORDS = 3

Interval = tuple[int, int]  # addresses [start, end)
NO_REGIONS = np.empty(0, np.int64)


def is_within(intervals: Iterable[Interval], addresses: Addresses) -> Flags:
    """Whether each address lies in one of the intervals, which do not overlap."""
    table = np.array(sorted(intervals) or [(0, 0)], np.uint64)
    row = np.maximum(np.searchsorted(table[:, 0], addresses, "right") - 1, 0)
    found: Flags = (table[row, 0] <= addresses) & (addresses < table[row, 1])
    return found


class ScanRequest(ctypes.Structure):
    """struct pm_scan_arg."""

    _fields_: ClassVar = [
        (name, ctypes.c_uint64)
        for name in (
            "size",
            "flags",
            "start",
            "end",
            "walk_end",
            "vec",
            "vec_len",
            "max_pages",
            "category_inverted",
            "category_mask",
            "category_anyof_mask",
            "return_mask",
        )
    ]


@dataclass
class PageMap:
    """Which pages are resident between `start` and `end`; only of regions that have any, as terabytes may be
    reserved: [region, page].  A slab, and a granule, lies in one region."""

    start: int
    end: int
    regions: Integers  # their numbers: address / REGION_BYTES, sorted
    present: Flags

    def __post_init__(self) -> None:
        nothing = np.zeros((1, REGION_PAGES), np.bool_)  # the row of all other regions
        self.present = np.concatenate([self.present, nothing])
        self._present_sums = _sums(self.present)

    @property
    def resident_bytes(self) -> int:
        return int(self._present_sums[-1]) * PAGE_BYTES

    def resident_between(self, starts: Numbers, ends: Numbers) -> Integers:
        """Resident bytes of each [start, end)."""
        return self._resident_below(ends) - self._resident_below(starts)

    def _resident_below(self, addresses: Numbers) -> Integers:
        index, is_known = self._index_of(addresses)
        partly = self.present.reshape(-1)[index] & is_known
        into_page = np.asarray(addresses).astype(np.int64) % PAGE_BYTES
        return self._present_sums[index] * PAGE_BYTES + partly * into_page

    def _index_of(self, addresses: Numbers) -> tuple[Integers, Flags]:
        """The place of each address's page, or of the next one that is known; whether it is its own."""
        region, into = np.divmod(np.asarray(addresses).astype(np.int64), REGION_BYTES)
        row, is_known = self._rows_of(region)
        return row * REGION_PAGES + np.where(is_known, into // PAGE_BYTES, 0), is_known

    def _rows_of(self, regions: Integers) -> tuple[Integers, Flags]:
        row = np.searchsorted(self.regions, regions).astype(np.int64)
        is_known = np.append(self.regions, -1)[row] == regions
        return row, is_known

    def present_pages(self, starts: Numbers, page_count: int) -> Flags:
        """The present pages of page-aligned pieces that lie in one region each: [piece, page]."""
        region, into = np.divmod(np.asarray(starts).astype(np.int64), REGION_BYTES)
        row, is_known = self._rows_of(region)
        row[~is_known] = len(self.regions)
        page = np.minimum((into // PAGE_BYTES)[:, None] + np.arange(page_count), REGION_PAGES - 1)
        return self.present[row[:, None], page]


def _sums(flags: Flags) -> Integers:
    """How many are set before each; one more at the end."""
    sums = np.zeros(flags.size + 1, np.int64)
    np.cumsum(flags.reshape(-1), dtype=np.int64, out=sums[1:])
    return sums


def read_page_map(process: Process, start: int, end: int, mapped: Iterable[Interval]) -> PageMap:
    """The pages of [start, end), of which only the `mapped` parts are queried."""
    parts = clipped(mapped, start, end)
    with open_pagemap(process) as file:
        found = [regions_with_pages(file, low, high) for low, high in parts]
        regions = np.unique(np.concatenate([NO_REGIONS, *found]))
        words = np.zeros(regions.size * REGION_PAGES, np.uint64)
        zero = np.zeros(words.size, np.bool_)
        for low, high, place in pieces(regions, parts):
            pages = slice(place, place + (high - low) // PAGE_BYTES)
            words[pages] = read_entries(file, low, (high - low) // PAGE_BYTES)
            mark_zero_pages(file, low, high, zero[pages])
    present = (words & PRESENT != 0) & ~zero
    return PageMap(start, end, regions, present.reshape(-1, REGION_PAGES))


def pieces(regions: Integers, parts: Iterable[Interval]) -> Iterator[tuple[int, int, int]]:
    """Where runs of regions and the parts overlap, and the place of the first page there."""
    if not regions.size:
        return
    breaks = np.flatnonzero(np.diff(regions) != 1) + 1
    rows = np.concatenate([[0], breaks])
    lows = regions[rows] * REGION_BYTES
    highs = (regions[np.concatenate([breaks, [regions.size]]) - 1] + 1) * REGION_BYTES
    for low, high in parts:
        first, last = np.searchsorted(highs, low, "right"), np.searchsorted(lows, high, "left")
        for run in range(int(first), int(last)):
            start, end, run_low = max(low, int(lows[run])), min(high, int(highs[run])), int(lows[run])
            if start < end:
                yield start, end, int(rows[run]) * REGION_PAGES + (start - run_low) // PAGE_BYTES


def regions_with_pages(file: int, low: int, high: int) -> Integers:
    """The numbers of the regions in [low, high) that may have pages, resident or swapped out."""
    if high - low <= SMALL_BYTES:
        return np.arange(low // REGION_BYTES, -(-high // REGION_BYTES), dtype=np.int64)
    try:
        parts = list(scanned(file, low, high, PAGE_IS_PRESENT, any_of=HAS_PAGES))
    except OSError:
        return _regions_by_entries(file, low, high)
    runs = np.concatenate([np.zeros((0, REGION_WORDS), np.int64), *(part.astype(np.int64) for part in parts)])
    first, last = runs[:, 0] // REGION_BYTES, (runs[:, 1] - 1) // REGION_BYTES
    counts = last - first + 1
    steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.unique(np.repeat(first, counts) + steps)


def _regions_by_entries(file: int, low: int, high: int) -> Integers:
    """The same where the kernel cannot say it: from each page's entry, a gibibyte at a time."""
    found = [NO_REGIONS]
    low, end = low // REGION_BYTES, -(-high // REGION_BYTES)
    while low < end:
        count = min(end - low, REGIONS_AT_ONCE)
        words = read_entries(file, low * REGION_BYTES, count * REGION_PAGES).reshape(count, REGION_PAGES)
        found.append(low + np.flatnonzero((words & (PRESENT | SWAPPED)).any(axis=1)))
        low += count
    return np.concatenate(found)


@contextmanager
def open_pagemap(process: Process) -> Iterator[int]:
    """A descriptor of /proc/PID/pagemap."""
    file = process.open("pagemap")
    try:
        yield file
    finally:
        os.close(file)


def core_page_map(memory: Memory, start: int, end: int, written: Iterable[Interval]) -> PageMap:
    """A core's pages: one is resident if it is present and not all zeros.  Only the parts `written` into the
    core are read: terabytes may have been reserved."""
    rows: dict[int, Flags] = {}
    for low, high in clipped(written, start, end):
        for number in range(low // REGION_BYTES, -(-high // REGION_BYTES)):
            first, last = max(low, number * REGION_BYTES), min(high, (number + 1) * REGION_BYTES)
            place = first % REGION_BYTES // PAGE_BYTES
            found = _nonzero_pages(memory, first - first % PAGE_BYTES, last)
            if found.any():
                row = rows.setdefault(number, np.zeros(REGION_PAGES, np.bool_))
                row[place : place + found.size] |= found
    regions = np.array(sorted(rows), np.int64)
    present = np.array([rows[number] for number in regions], np.bool_).reshape(-1, REGION_PAGES)
    return PageMap(start, end, regions, present)


def _nonzero_pages(memory: Memory, start: int, end: int) -> Flags:
    data = np.zeros(-(-(end - start) // PAGE_BYTES) * PAGE_BYTES, np.uint8)
    with suppress(UnreadableError):
        data[: end - start] = memory.array(start, np.dtype("u1"), end - start)
    return np.asarray(data.view(np.uint64).reshape(-1, PAGE_BYTES // 8).any(axis=1))


def clipped(intervals: Iterable[Interval], start: int, end: int) -> list[Interval]:
    """The parts of the intervals that lie in [start, end)."""
    parts = ((max(low, start), min(high, end)) for low, high in intervals)
    return [(low, high) for low, high in parts if low < high]


def read_entries(file: int, address: int, page_count: int) -> Words:
    """The pagemap words of some pages; zeros if the process has ended or unmapped them meanwhile."""
    words = np.zeros(page_count, np.uint64)
    view = words.view(np.uint8).data
    offset, done = address // PAGE_BYTES * PAGEMAP_ENTRY_BYTES, 0
    while done < len(view) and (got := os.preadv(file, [view[done:]], offset + done)):
        done += got
    return words


def scanned(file: int, low: int, high: int, wanted: int, all_of: int = 0, any_of: int = 0) -> Iterator[Words]:
    """PAGEMAP_SCAN of [low, high), thousands at a time: runs of pages with all categories of `all_of`, and
    one of `any_of` if that is given, as (start, end, which of `wanted` they have).  OSError if this kernel
    does not have it."""
    while low < high:
        runs = np.zeros((SCAN_REGIONS, REGION_WORDS), np.uint64)
        request = ScanRequest(
            size=ctypes.sizeof(ScanRequest),
            start=low,
            end=high,
            vec=runs.ctypes.data,
            vec_len=SCAN_REGIONS,
            category_mask=all_of,
            category_anyof_mask=any_of,
            return_mask=wanted,
        )
        yield runs[: fcntl.ioctl(file, PAGEMAP_SCAN, request)]
        if request.walk_end <= low:
            return
        low = request.walk_end


def populated(file: int, low: int, high: int) -> list[Interval]:
    """The parts of [low, high) that have pages, resident or swapped out: found without a look at each page:
    terabytes may be reserved.  All of it if this kernel cannot tell."""
    try:
        parts = scanned(file, low, high, PAGE_IS_PRESENT, any_of=HAS_PAGES)
        return [(start, end) for part in parts for start, end, _ in part.tolist()]
    except OSError:
        return [(low, high)]


def mark_zero_pages(file: int, low: int, high: int, zero: Flags) -> None:
    """Marks the zero pages of [low, high), whose flags these are, if this kernel can report them."""
    with suppress(OSError):
        for part in scanned(file, low, high, PAGE_IS_PFNZERO, PAGE_IS_PFNZERO | PAGE_IS_PRESENT):
            for start, end, _ in part.tolist():
                zero[(start - low) // PAGE_BYTES : (end - low) // PAGE_BYTES] = True
