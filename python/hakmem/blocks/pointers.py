"""The words of a target's memory that point into blocks.

Pages are read in batches of a mebibyte, which fit the processor's caches; a few threads read and filter
them, as reading and numpy's loops leave the interpreter free.  A word counts as a pointer if it lies in a
block, wherever in it: conservatively, as H. Boehm and M. Weiser ("Garbage collection in an uncooperative
environment", 1988) do."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from hakmem.base.errors import UnreadableError
from hakmem.blocks.block_map import BlockMap
from hakmem.blocks.regions import WORD_BYTES, Region, Runs
from hakmem.layout.memory import PAGE_BYTES, Addresses, Integers, Memory

Result = TypeVar("Result")

BATCH_BYTES = 1 << 20
WORKERS_MAX = 4
AHEAD = 2  # batches for each worker


@dataclass
class Found:
    """The pointers of one batch: one row each."""

    batch: Runs
    places: Integers  # numbers of the words in the batch
    blocks: Integers  # that they point into
    into: Integers  # how far

    def chosen(self, rows: Integers | slice) -> Found:
        return Found(self.batch, self.places[rows], self.blocks[rows], self.into[rows])


def batches(runs: Iterable[Runs]) -> Iterator[Runs]:
    """Large runs are cut, small ones of one region are put together."""
    for item in runs:
        starts: list[int] = []
        counts: list[int] = []
        total = 0
        for start, count in zip(item.starts.tolist(), item.counts.tolist(), strict=True):
            end, at = start + count // WORD_BYTES * WORD_BYTES, start
            while at < end:
                part = min(end - at, BATCH_BYTES - total)
                starts.append(at)
                counts.append(part)
                at, total = at + part, total + part
                if total == BATCH_BYTES:
                    yield _batch(item.region, starts, counts)
                    starts, counts, total = [], [], 0
        if starts:
            yield _batch(item.region, starts, counts)


def _batch(region: Region, starts: list[int], counts: list[int]) -> Runs:
    return Runs(region, np.array(starts, np.uint64), np.array(counts, np.uint64))


def read_pieces(memory: Memory, starts: Addresses, counts: Addresses) -> Addresses:
    """The words of some pieces; zeros where the program has unmapped pages meanwhile."""
    try:
        return memory.gather(starts, counts).view(np.uint64)
    except UnreadableError:
        pieces = zip(starts.tolist(), counts.tolist(), strict=True)
        return np.frombuffer(b"".join(_tolerantly(memory, *piece) for piece in pieces), np.uint64)


def _tolerantly(memory: Memory, start: int, count: int) -> bytes:
    """Page by page."""
    parts = []
    end = start + count
    while start < end:
        size = min(end, start // PAGE_BYTES * PAGE_BYTES + PAGE_BYTES) - start
        try:
            parts.append(memory.read(start, size))
        except UnreadableError:
            parts.append(bytes(size))
        start += size
    return b"".join(parts)


def pointers_in(batch: Runs, block_map: BlockMap) -> Found:
    """The pointers among all words in a batch."""
    words = read_pieces(block_map.target.memory, batch.starts, batch.counts)
    places = block_map.candidates(words)
    blocks, into = block_map.find(words[places])
    known = np.flatnonzero(blocks >= 0)
    return Found(batch, places[known], blocks[known], into[known])


def each(work: Callable[[Runs], Result], items: Iterable[Runs]) -> Iterator[Result]:
    """work(item) of each, in order, done ahead by a few threads."""
    count = min(WORKERS_MAX, len(os.sched_getaffinity(0)))
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(count) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > count * AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()
