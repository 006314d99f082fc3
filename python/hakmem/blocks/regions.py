"""Memory read for pointers: the pages of hakmem's blocks, and the roots, all other memory of the program.

    window    [ blocks | blocks | records | foreign | … ]     blocks: HEAP; hakmem's own records are left out
    outside   data of files, stacks, other anonymous memory, shared memory: roots; hakmem's maps are left out

Only what is resident is read: to read anything else would make it resident.  What was swapped out is
counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hakmem.blocks.block_map import BlockMap
from hakmem.blocks.threads import Thread
from hakmem.layout.memory import Addresses, Integers
from hakmem.layout.structures import runs_of
from hakmem.target.mappings import SHARED_PREFIXES, Outside, classify
from hakmem.target.pages import (
    PAGE_BYTES,
    PRESENT,
    SWAPPED,
    Interval,
    clipped,
    open_pagemap,
    populated,
    read_entries,
)
from hakmem.target.process import Mapping
from hakmem.target.target import Target

PAGES_AT_ONCE = 1 << 15
WORD_BYTES = 8
SPARSE_BYTES_MIN = 1 << 28  # of larger regions most may have no pages
OF_FILE = np.uint64(1 << 61)  # pagemap: a page of a file or of shared memory
KERNELS_OWN = ("[vvar", "[vdso", "[vsyscall", "[uprobes")


class Kind(StrEnum):
    HEAP = "blocks"
    DATA = "static data"
    STACK = "stack"
    SHARED = "shared memory"
    ANONYMOUS = "anonymous memory"


KIND_OF = {
    Outside.STACKS: Kind.STACK,
    Outside.FILES: Kind.DATA,
    Outside.SHARED: Kind.SHARED,
    Outside.OTHER_MALLOC: Kind.ANONYMOUS,
    Outside.ANONYMOUS: Kind.ANONYMOUS,
}


@dataclass(frozen=True)
class Region:
    start: int
    end: int
    kind: Kind
    mapping: Mapping
    thread: Thread | None = None  # of a stack, if known


@dataclass
class Runs:
    """Resident parts of one region."""

    region: Region
    starts: Addresses
    counts: Addresses  # bytes

    @property
    def bytes(self) -> int:
        return int(self.counts.sum())

    def addresses_of(self, places: Integers) -> Addresses:
        """The addresses of words, by their numbers in the batch."""
        if len(self.starts) == 1:
            found: Addresses = self.starts[0] + places.astype(np.uint64) * np.uint64(WORD_BYTES)
            return found
        ends = np.cumsum(self.counts.astype(np.int64)) // WORD_BYTES
        piece = np.searchsorted(ends, places, "right")
        before = ends[piece] - self.counts[piece].astype(np.int64) // WORD_BYTES
        return self.starts[piece] + (places - before).astype(np.uint64) * np.uint64(WORD_BYTES)


class Regions:
    """The regions of one target, and which of their pages can be read.  Without a block map all are roots."""

    def __init__(self, target: Target, threads: Sequence[Thread], block_map: BlockMap | None = None) -> None:
        self.target = target
        self.swapped_bytes = 0
        self.missing_bytes = 0  # of a core: memory that was not dumped
        self._has_swapped = has_swapped(self.target)
        self.mappings = self.target.maps()
        self.heap = self._heap(block_map.memory() if block_map else [])
        self.roots = self._roots(block_map.own(self.mappings) if block_map else [], threads)

    # ---- which --------------------------------------------------------------------------------------

    def _heap(self, memory: Sequence[Interval]) -> list[Region]:
        return [
            Region(low, high, Kind.HEAP, mapping)
            for start, end in memory
            for mapping in self.mappings
            if "r" in mapping.permissions
            for low, high in clipped([(start, end)], mapping.start, mapping.end)
        ]

    def _roots(self, own: Sequence[Interval], threads: Sequence[Thread]) -> list[Region]:
        pointers = sorted(thread.stack_pointer for thread in threads if thread.stack_pointer)
        kinds = classify(self.mappings, self.target.data_end, pointers)
        return [
            self._root(low, high, KIND_OF[kind], mapping, threads)
            for mapping, kind in zip(self.mappings, kinds, strict=True)
            if kind is not Outside.LIBRARY and may_point(mapping)
            for low, high in without(own, mapping.start, mapping.end)
        ]

    def _root(self, low: int, high: int, kind: Kind, mapping: Mapping, threads: Sequence[Thread]) -> Region:
        """A root; only the used part of a stack, where that is certain."""
        inside = [thread for thread in threads if low <= (thread.stack_pointer or 0) < high]
        thread = inside[0] if len(inside) == 1 else None
        if kind is Kind.STACK and thread is not None and thread.stack_start(self.target.memory, mapping):
            low = max(low, thread.stack_start(self.target.memory, mapping))
        return Region(low, high, kind, mapping, thread)

    # ---- which pages --------------------------------------------------------------------------------

    def runs(self, regions: Iterable[Region], with_swapped: bool = False) -> Iterator[Runs]:
        """The parts of these regions that can be read, in the order of the regions."""
        process = self.target.process
        if process is None:
            yield from self._core_runs(regions)
            return
        with open_pagemap(process) as file:
            for region in regions:
                yield from self._resident_runs(file, region, with_swapped)

    def _resident_runs(self, file: int, region: Region, with_swapped: bool) -> Iterator[Runs]:
        """A private page of a file that the program has not written holds no pointer."""
        first = region.start // PAGE_BYTES * PAGE_BYTES
        last = -(-region.end // PAGE_BYTES) * PAGE_BYTES
        is_small = last - first < SPARSE_BYTES_MIN
        for start, end in [(first, last)] if is_small else populated(file, first, last):
            for low in range(start, end, PAGES_AT_ONCE * PAGE_BYTES):
                high = min(low + PAGES_AT_ONCE * PAGE_BYTES, end)
                yield from self._runs_between(file, region, low, high, with_swapped)

    def _runs_between(
        self, file: int, region: Region, low: int, high: int, with_swapped: bool
    ) -> Iterator[Runs]:
        entries = read_entries(file, low, (high - low) // PAGE_BYTES)
        is_read = entries & PRESENT != 0
        if region.mapping.is_file and "p" in region.mapping.permissions:
            is_read &= entries & OF_FILE == 0
        is_swapped = (entries & SWAPPED != 0) & (entries & OF_FILE == 0) & self._has_swapped
        if with_swapped:
            is_read |= is_swapped
        else:
            self.swapped_bytes += int(is_swapped.sum()) * PAGE_BYTES
        starts, ends = runs_of(is_read)
        if len(starts):
            addresses = np.maximum(low + starts * PAGE_BYTES, region.start)
            bounds = np.minimum(low + ends * PAGE_BYTES, region.end)
            yield Runs(region, addresses.astype(np.uint64), (bounds - addresses).astype(np.uint64))

    def _core_runs(self, regions: Iterable[Region]) -> Iterator[Runs]:
        assert self.target.core is not None
        for region in regions:
            dumped = clipped(self.target.core.dumped, region.start, region.end)
            missing = region.end - region.start - sum(high - low for low, high in dumped)
            if not region.mapping.is_file and "w" in region.mapping.permissions:
                self.missing_bytes += missing
            if dumped:
                table = np.array(dumped, np.uint64)
                yield Runs(region, table[:, 0], table[:, 1] - table[:, 0])


def has_swapped(target: Target) -> bool:
    """Is any of its memory swapped out?  The page map alone does not tell: closed pages (MADV_GUARD_INSTALL)
    look as if they were."""
    return target.process is not None and target.process.figures().swap_bytes > 0


# ---- parts of mappings ------------------------------------------------------------------------------


def without(taken: Sequence[Interval], start: int, end: int) -> list[Interval]:
    """The rest of [start, end)."""
    left, at = [], start
    for low, high in clipped(taken, start, end):
        if at < low:
            left.append((at, low))
        at = high
    return [*left, (at, end)] if at < end else left


def may_point(mapping: Mapping) -> bool:
    """Can the program have pointers there, and can they be read?  Devices are not memory, and what is shared
    and not writable has been written elsewhere."""
    is_device = mapping.path.startswith("/dev/") and not mapping.path.startswith(SHARED_PREFIXES)
    is_writable = "w" in mapping.permissions or "p" in mapping.permissions
    is_kernels = mapping.path.startswith(KERNELS_OWN)
    return "r" in mapping.permissions and is_writable and not is_device and not is_kernels
