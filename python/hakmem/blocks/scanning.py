"""One scan for reachability: blocks, roots, marks.

Nothing is stopped for it: a pointer that moves from a place that is read late to one that was read early is
missed.  So the stacks are read a second time at the end, and one scan alone proves nothing (leaks.py)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hakmem.base.progress import Progress, no_progress
from hakmem.blocks.block_map import BlockMap, read_block_map
from hakmem.blocks.marking import Edges, Marking
from hakmem.blocks.pointers import batches, each, read_pieces
from hakmem.blocks.regions import Kind, Region, Regions, Runs
from hakmem.blocks.threads import Thread, kernel_words, threads_of, threads_of_core
from hakmem.layout.memory import Addresses, Integers, Memory
from hakmem.target.target import Target

HASHED_WORDS = 64
HASHED_AT_ONCE = 1 << 15
# Any odd numbers: a change in any word changes the sum.
FACTORS = np.random.default_rng(1).integers(1, 1 << 62, HASHED_WORDS, np.uint64) * np.uint64(2) + np.uint64(1)


@dataclass
class Scan:
    map: BlockMap
    marking: Marking
    edges: Edges  # between unreachable blocks
    unreachable: Integers
    hashes: Addresses  # of their contents
    threads: list[Thread]
    swapped_bytes: int
    missing_bytes: int
    read_bytes: int
    seconds: float
    processor_seconds: float  # of the tool


@dataclass
class Scanning:
    target: Target
    with_swapped: bool = False
    progress: Progress = no_progress
    _read_bytes: int = field(default=0, init=False)

    def run(self) -> Scan:
        began_s, began_processor_s = time.monotonic(), time.process_time()
        block_map = read_block_map(self.target)
        marking = Marking(block_map)
        threads = self.threads()
        regions = Regions(self.target, threads, block_map)
        self.mark_roots(marking, regions, regions.roots, threads)
        heap = self.mark_blocks(marking, regions)
        if self.target.process is not None:
            threads = self.threads()
            again = Regions(self.target, threads, block_map)
            stacks = [region for region in again.roots if region.kind is Kind.STACK]
            self.mark_roots(marking, again, stacks, threads)
        edges, unreachable = marking.finish(), marking.unreachable()
        return Scan(
            map=block_map,
            marking=marking,
            edges=edges,
            unreachable=unreachable,
            hashes=hashes(self.target.memory, block_map, unreachable, heap),
            threads=threads,
            swapped_bytes=regions.swapped_bytes,
            missing_bytes=regions.missing_bytes,
            read_bytes=self._read_bytes,
            seconds=time.monotonic() - began_s,
            processor_seconds=time.process_time() - began_processor_s,
        )

    def threads(self) -> list[Thread]:
        if self.target.process is not None:
            return threads_of(self.target.process)
        return threads_of_core(self.target.core) if self.target.core else []

    def mark_roots(
        self, marking: Marking, regions: Regions, chosen: Sequence[Region], threads: Sequence[Thread]
    ) -> None:
        """Registers, what the kernel keeps for the program, and regions."""
        marking.mark_words(root_words(self.target, threads))
        for count in each(marking.mark_roots, batches(regions.runs(chosen, self.with_swapped))):
            self._read_bytes += count

    def mark_blocks(self, marking: Marking, regions: Regions) -> tuple[Addresses, Addresses]:
        """The pass over all blocks; which addresses were read: starts and ends, sorted."""
        starts, ends = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
        whole = sum(region.end - region.start for region in regions.heap)

        def work(batch: Runs) -> tuple[Runs, int, Edges]:
            return batch, *marking.edges_of(batch)

        for batch, count, edges in each(work, batches(regions.runs(regions.heap, self.with_swapped))):
            marking.keep(edges)
            self._read_bytes += count
            starts.append(batch.starts)
            ends.append(batch.starts + batch.counts)
            self.progress(min(1.0, self._read_bytes / max(whole, 1)))
        together = np.concatenate(starts)
        order = np.argsort(together, kind="stable")
        return together[order], np.concatenate(ends)[order]


def root_words(target: Target, threads: Sequence[Thread]) -> Addresses:
    words = [word for thread in threads for word in thread.registers]
    words += kernel_words(target.process) if target.process else []
    return np.array(words, np.uint64)


def hashes(
    memory: Memory, block_map: BlockMap, blocks: Integers, resident: tuple[Addresses, Addresses]
) -> Addresses:
    """A number for the first bytes of each block, as far as they are resident; 0 of others."""
    found = np.zeros(len(blocks), np.uint64)
    run_starts, run_ends = resident
    if not len(run_starts):
        return found
    for first in range(0, len(blocks), HASHED_AT_ONCE):
        part = slice(first, first + HASHED_AT_ONCE)
        starts, sizes = block_map.starts_of(blocks[part]), block_map.sizes_of(blocks[part]).astype(np.uint64)
        run = np.maximum(np.searchsorted(run_starts, starts, "right") - 1, 0)
        ends = np.minimum(np.minimum(starts + sizes, run_ends[run]), starts + np.uint64(HASHED_WORDS * 8))
        rows = np.flatnonzero((run_starts[run] <= starts) & (ends >= starts + np.uint64(8)))
        if len(rows):
            counts = (ends[rows] - starts[rows]) // np.uint64(8)
            found[first + rows] = _sums(memory, starts[rows], counts)
    return found


def _sums(memory: Memory, starts: Addresses, counts: Addresses) -> Addresses:
    """The sum of the words at each address; `counts`: words for each."""
    words = read_pieces(memory, starts, counts * np.uint64(8))
    firsts = np.cumsum(counts.astype(np.int64)) - counts.astype(np.int64)
    place = np.arange(len(words)) - np.repeat(firsts, counts.astype(np.int64))
    return np.add.reduceat(words * FACTORS[place], firsts)
