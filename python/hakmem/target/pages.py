"""Which pages of part of a process's memory are resident.

Two sources: /proc/PID/pagemap (a word per page) and, on Linux 6.7 and later, its PAGEMAP_SCAN request, which
also identifies the shared zero page (not part of RSS) and huge pages."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from hakmem.base.errors import UnreadableError
from hakmem.layout.memory import Memory
from hakmem.target.access import gone, refused
from hakmem.target.process import Process

if TYPE_CHECKING:
    from numpy.typing import NDArray

CORE_PAGES_AT_ONCE = 512  # 2 MiB: one chunk, mapped as a whole
PAGE_BYTES = mmap.PAGESIZE
PAGEMAP_ENTRY_BYTES = 8
PRESENT = np.uint64(1 << 63)
SWAPPED = np.uint64(1 << 62)

# linux/fs.h
PAGEMAP_SCAN = 0xC0606610
PAGE_IS_PRESENT, PAGE_IS_SWAPPED, PAGE_IS_PFNZERO, PAGE_IS_HUGE = 1 << 3, 1 << 4, 1 << 5, 1 << 6
SCAN_REGIONS = 4096
REGION_WORDS = 3

Interval = tuple[int, int]  # addresses [start, end)
Integers: TypeAlias = "NDArray[np.int64]"


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
    """Which pages are resident between `start` and start + present.size pages."""

    start: int
    present: NDArray[np.bool_]
    swapped: NDArray[np.bool_]
    huge: NDArray[np.bool_]
    knows_huge: bool

    def __post_init__(self) -> None:
        self.sums = np.zeros(self.present.size + 1, np.int64)
        np.cumsum(self.present, dtype=np.int64, out=self.sums[1:])

    @property
    def end(self) -> int:
        return self.start + self.present.size * PAGE_BYTES

    @property
    def resident_bytes(self) -> int:
        return int(self.sums[-1]) * PAGE_BYTES

    def resident_below(self, addresses: NDArray[np.integer]) -> Integers:
        """Resident bytes from `start` to each address."""
        page, into_page = np.divmod(np.asarray(addresses).astype(np.int64) - self.start, PAGE_BYTES)
        page = np.clip(page, 0, self.present.size)
        partly = self.present[np.minimum(page, self.present.size - 1)] & (page < self.present.size)
        return self.sums[page] * PAGE_BYTES + partly * into_page

    def resident_between(self, starts: NDArray[np.integer], ends: NDArray[np.integer]) -> Integers:
        """Resident bytes of each [start, end)."""
        if not self.present.size:
            return np.zeros(np.shape(starts), np.int64)
        return self.resident_below(ends) - self.resident_below(starts)

    def pages_of(self, starts: NDArray[np.integer], page_count: int) -> NDArray[np.int64]:
        """Indices of the pages of page-aligned regions: [region, page]."""
        first = (np.asarray(starts).astype(np.int64) - self.start) // PAGE_BYTES
        return first[:, None] + np.arange(page_count)


def read_page_map(process: Process, start: int, end: int, mapped: Iterable[Interval]) -> PageMap:
    """The pages of [start, end), of which only the `mapped` parts are queried."""
    count = max(0, end - start) // PAGE_BYTES
    words = np.zeros(count, np.uint64)
    zero, huge = np.zeros(count, bool), np.zeros(count, bool)
    knows_huge = True
    with open_pagemap(process) as file:
        for low, high in clipped(mapped, start, end):
            first, last = (low - start) // PAGE_BYTES, (high - start) // PAGE_BYTES
            words[first:last] = read_entries(file, low, last - first)
            knows_huge = knows_huge and mark_special(file, low, high, start, zero, huge)
    present = (words & PRESENT != 0) & ~zero
    return PageMap(start, present, words & SWAPPED != 0, huge & present, knows_huge)


@contextmanager
def open_pagemap(process: Process) -> Iterator[int]:
    """A descriptor of /proc/PID/pagemap."""
    try:
        file = os.open(process.path("pagemap"), os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        raise refused(process.pid) from None
    except (FileNotFoundError, ProcessLookupError):
        raise gone(process.pid) from None
    try:
        yield file
    finally:
        os.close(file)


def core_page_map(memory: Memory, start: int, end: int) -> PageMap:
    """Of a core: a page counts as resident if it is present and not all zeros."""
    count = max(0, end - start) // PAGE_BYTES
    present = np.zeros(count, bool)
    for first in range(0, count, CORE_PAGES_AT_ONCE):
        pages = min(CORE_PAGES_AT_ONCE, count - first)
        try:
            data = memory.array(start + first * PAGE_BYTES, np.dtype("u8"), pages * PAGE_BYTES // 8)
        except UnreadableError:
            continue
        present[first : first + pages] = data.reshape(pages, -1).any(axis=1)
    nothing = np.zeros(count, bool)
    return PageMap(start, present, nothing, nothing, False)


def clipped(intervals: Iterable[Interval], start: int, end: int) -> list[Interval]:
    """The parts of the intervals that lie in [start, end)."""
    parts = ((max(low, start), min(high, end)) for low, high in intervals)
    return [(low, high) for low, high in parts if low < high]


def read_entries(file: int, address: int, page_count: int) -> NDArray[np.uint64]:
    """The pagemap words of some pages; zeros if the process has ended or unmapped them meanwhile."""
    words = np.zeros(page_count, np.uint64)
    view = memoryview(words.view(np.uint8))
    done = 0
    while done < len(view):
        offset = address // PAGE_BYTES * PAGEMAP_ENTRY_BYTES + done
        got = os.preadv(file, [view[done:]], offset)
        if not got:
            break
        done += got
    return words


def scanned(
    file: int, low: int, high: int, wanted: int, all_of: int = 0, any_of: int = 0
) -> Iterator[tuple[int, int, int]]:
    """PAGEMAP_SCAN of [low, high): runs of pages with all categories of `all_of`, and one of `any_of` if that
    is given, as (start, end, which of `wanted` they have).  OSError if this kernel does not have it."""
    regions = np.zeros((SCAN_REGIONS, REGION_WORDS), np.uint64)
    while low < high:
        request = ScanRequest(
            size=ctypes.sizeof(ScanRequest),
            start=low,
            end=high,
            vec=regions.ctypes.data,
            vec_len=SCAN_REGIONS,
            category_mask=all_of,
            category_anyof_mask=any_of,
            return_mask=wanted,
        )
        count = fcntl.ioctl(file, PAGEMAP_SCAN, request)
        yield from regions[:count].tolist()
        if request.walk_end <= low:
            return
        low = request.walk_end


def populated(file: int, low: int, high: int) -> list[Interval]:
    """The parts of [low, high) that have pages, resident or swapped out: found without a look at each page:
    terabytes may be reserved.  All of it if this kernel cannot tell."""
    has_pages = PAGE_IS_PRESENT | PAGE_IS_SWAPPED
    try:
        return [(start, end) for start, end, _ in scanned(file, low, high, PAGE_IS_PRESENT, any_of=has_pages)]
    except OSError:
        return [(low, high)]


def mark_special(
    file: int, low: int, high: int, start: int, zero: NDArray[np.bool_], huge: NDArray[np.bool_]
) -> bool:
    """Marks zero pages and huge pages of [low, high); False if this kernel cannot report them."""
    wanted = PAGE_IS_PFNZERO | PAGE_IS_HUGE
    try:
        for region_start, region_end, categories in scanned(file, low, high, wanted, PAGE_IS_PRESENT, wanted):
            pages = slice((region_start - start) // PAGE_BYTES, (region_end - start) // PAGE_BYTES)
            zero[pages] |= bool(categories & PAGE_IS_PFNZERO)
            huge[pages] |= bool(categories & PAGE_IS_HUGE)
    except OSError:
        return False
    return True
