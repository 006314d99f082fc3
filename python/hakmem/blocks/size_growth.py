"""Which sizes of blocks grow, where a malloc keeps no call sites: the heap is counted a few times.

Growth is the rise of a straight line through the counts; its bounds are twice as far off as the count that is
farthest from the line."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from statistics import linear_regression

from hakmem.base.durations import duration_text
from hakmem.base.progress import Progress
from hakmem.base.sizes import bytes_text
from hakmem.blocks.block_map import read_block_map
from hakmem.blocks.content import Contents
from hakmem.blocks.files import Files
from hakmem.blocks.what import describe
from hakmem.target.glibc import walk
from hakmem.target.target import Target

COUNTS = 6
FOR_S = 10.0
LEAST_BYTES = 4096  # less is not shown
SHOWN_MAX = 8
DRAWS = 200

Counts = dict[int, int]


@dataclass(frozen=True)
class Grown:
    """The live blocks of one size."""

    block_bytes: int
    blocks: int  # now
    low: int  # by how many they grew, at least
    high: int
    content: str  # that prevails, of a few of them

    @property
    def text(self) -> str:
        size = f"{self.block_bytes:,}-byte blocks" + (f" holding {self.content}" if self.content else "")
        grown = f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"
        return (
            f"{size}: {grown} more ({bytes_text(self.low * self.block_bytes)} or more), {self.blocks:,} now"
        )


@dataclass(frozen=True)
class SizeGrowth:
    seconds: float
    sizes: list[Grown]  # largest first

    @property
    def verdict(self) -> str:
        length = duration_text(self.seconds)
        if not self.sizes:
            return f"No size of blocks grew in {length}."
        return f"In {length} grew: {'; '.join(one.text for one in self.sizes[:3])}."


def watch_sizes(target: Target, for_s: float | None, progress: Progress) -> SizeGrowth:
    began_s, seconds = time.monotonic(), FOR_S if for_s is None else for_s
    counts: list[Counts] = []
    for step in range(COUNTS):
        if step:
            time.sleep(max(0.0, began_s + seconds * step / (COUNTS - 1) - time.monotonic()))
        last_s = time.monotonic() - began_s
        counts.append(walk(target).live_blocks)
        progress(time.monotonic() - began_s)
    target.check_same()
    found = [(size, *bounds_of([one.get(size, 0) for one in counts])) for size in counts[-1]]
    grown = [(size, low, high) for size, low, high in found if low * size >= LEAST_BYTES]
    grown.sort(key=lambda one: -one[0] * one[1])
    contents = contents_of(target, [size for size, _, _ in grown[:SHOWN_MAX]])
    rows = [
        Grown(size, counts[-1][size], low, high, contents.get(size, ""))
        for size, low, high in grown[:SHOWN_MAX]
    ]
    return SizeGrowth(round(last_s, 3), rows)


def bounds_of(counts: list[int]) -> tuple[int, int]:
    """How much they grew, at least and at most."""
    slope, start = linear_regression(range(len(counts)), counts)
    farthest = max(abs(count - start - slope * step) for step, count in enumerate(counts))
    grown = slope * (len(counts) - 1)
    return math.floor(grown - 2 * farthest), math.ceil(grown + 2 * farthest)


def contents_of(target: Target, sizes: list[int]) -> dict[int, str]:
    """Which content prevails in blocks of these sizes."""
    if not sizes:
        return {}
    block_map = read_block_map(target)
    contents, live = Contents(block_map, Files(target)), block_map.live_blocks()
    found = {}
    for size in sizes:
        rows, _ = describe(block_map, contents, live[block_map.sizes_of(live) == size], DRAWS, examples=False)
        if rows:
            found[size] = rows[0].title
    return found
