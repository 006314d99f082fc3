"""The chunks of glibc's malloc as blocks: sorted starts, found by binary search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hakmem.base.progress import Progress, no_progress
from hakmem.blocks.block_map import CHUNK, NONE, BlockMap, Details, State
from hakmem.census.on_hakmem import STATE_BITS, chunk_words
from hakmem.layout.memory import Addresses, Bytes, Integers
from hakmem.target.glibc import GlibcHeap, block_file, walk
from hakmem.target.pages import Interval
from hakmem.target.process import Mapping
from hakmem.target.target import Target

STATES = np.array([State.LIVE, State.FREE, State.MAGAZINE, NONE, NONE], np.int8)
TEXTS = {
    State.LIVE: "live",
    State.FREE: "free, between other chunks",
    State.MAGAZINE: "cached: freed, in a thread cache or a fastbin",
}
STEPS = 8  # classes for each doubling of the size
CLASS_BYTES_MAX = 1 << 20
BINS, BIN_BYTES = 127, 16
HEADER_BYTES = 16  # of a chunk before its block; the last 8 of its usable bytes are the next chunk's


@dataclass
class GlibcBlocks(BlockMap):
    target: Target
    heap: GlibcHeap
    starts: Addresses
    sizes: Integers
    states: Bytes
    class_bytes: Integers

    def candidates(self, words: Addresses) -> Integers:
        if not len(self.starts):
            return np.empty(0, np.int64)
        low, high = self.starts[0], self.starts[-1] + np.uint64(self.sizes[-1])
        return np.flatnonzero((words >= low) & (words < high))

    def find(self, addresses: Addresses) -> tuple[Integers, Integers]:
        rows = np.maximum(np.searchsorted(self.starts, addresses, "right") - 1, 0)
        if not len(self.starts):
            return np.full(len(addresses), NONE), np.zeros(len(addresses), np.int64)
        into = (addresses - self.starts[rows]).view(np.int64)
        is_inside = (into >= 0) & (into < self.sizes[rows])
        return np.where(is_inside, rows, NONE), np.where(is_inside, into, 0)

    def place_of(self, address: int, elsewhere: str) -> str:
        inside = any(low <= address < high for low, high in self.memory())
        return "in an arena, in no block: a header, the top, or unused" if inside else elsewhere

    def starts_of(self, blocks: Integers) -> Addresses:
        return self.starts[blocks]

    def sizes_of(self, blocks: Integers) -> Integers:
        return self.sizes[blocks]

    def classes_of(self, blocks: Integers) -> Integers:
        sizes = self.sizes[blocks]
        return np.where(sizes <= CLASS_BYTES_MAX, np.searchsorted(self.class_bytes, sizes), NONE)

    def details_of(self, block: int) -> Details:
        return Details(None, CHUNK, TEXTS[State(int(self.states[block]))])

    def own(self, mappings: Sequence[Mapping]) -> list[Interval]:  # noqa: ARG002 - the walk knows all
        """The main arena's record, in libc's data, leads to free chunks and the blocks before them."""
        length = self.heap.layout["bins_offset"] + BINS * BIN_BYTES
        records = [(one.address, one.address + length) for one in self.heap.arenas if one.is_main]
        return sorted([*self.memory(), *records])

    def memory(self) -> list[Interval]:
        """Heaps, and chunks with mappings of their own."""
        heaps = [(part.begin, part.mapped_end) for arena in self.heap.arenas for part in arena.heaps]
        outside = np.ones(len(self.starts), bool)
        for low, high in heaps:
            first, last = np.searchsorted(self.starts, np.array([low, high], np.uint64))
            outside[first:last] = False
        begins = self.starts[outside] - np.uint64(HEADER_BYTES)
        ends = self.starts[outside] + self.sizes[outside].astype(np.uint64)
        return sorted([*heaps, *zip(begins.tolist(), ends.tolist(), strict=True)])


def read(target: Target, progress: Progress = no_progress) -> GlibcBlocks:
    with block_file() as file:
        heap = walk(target, file)
        words = chunk_words(file)
    progress(1.0)
    starts, coded = words[:, 0], words[:, 1]
    states = STATES[np.minimum(coded & np.uint64((1 << STATE_BITS) - 1), len(STATES) - 1).astype(np.int64)]
    rows = np.flatnonzero(states != NONE)
    order = rows[np.argsort(starts[rows], kind="stable")]
    sizes = (coded[order] >> np.uint64(STATE_BITS)).astype(np.int64)
    return GlibcBlocks(target, heap, starts[order], sizes, states[order].astype(np.uint8), _class_bytes())


def _class_bytes() -> Integers:
    """Usable sizes: each of the small ones, then a few for each doubling."""
    small = np.arange(24, 1 << 10, 16)
    large = (2.0 ** (np.arange(10 * STEPS, 20 * STEPS + 1) / STEPS)).astype(np.int64)
    return np.concatenate([small, large])
