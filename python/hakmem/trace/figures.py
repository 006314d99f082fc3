"""The figures of a trace: rates, sizes, lifetimes, threads, and the live bytes over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hakmem.layout.memory import Doubles, Flags, Integers, Words
from hakmem.trace.file import Extent, Trace
from hakmem.trace.living import Living, Step, steps
from hakmem.trace.memory import Memory
from hakmem.trace.words import Op

POINTS = 60
NS_PER_S = 1e9
QUANTILES = (0.5, 0.9, 0.99)
# A lifetime is known by the 128th part of a doubling that it lies in: to 0.3 %.
PARTS, LIFETIMES = 128, 64 * 128
BLOCKS_AT_ONCE = 1 << 16
POWERS, ALL = 65, slice(None)


@dataclass(frozen=True)
class Row:
    """Blocks that are alike."""

    blocks: int
    bytes: int
    live_bytes: int  # at the end
    median_life_ns: float | None  # None: none was freed


@dataclass(frozen=True)
class SizeRow(Row):
    """The blocks of more than half of `up_to_bytes`, and at most that."""

    up_to_bytes: int


@dataclass(frozen=True)
class Figures:
    """Those of whole traces and of sampled lives, for which they are estimates."""

    seconds: float
    threads: int
    allocated_blocks: int
    allocated_bytes: int
    freed_blocks: int
    live_bytes_after: int
    freed_elsewhere: float  # share of the freed blocks that another thread had allocated
    life_quantiles_ns: dict[str, float]
    sizes: list[SizeRow]


@dataclass(frozen=True)
class TraceFigures(Figures):
    """They follow from its events."""

    events: int
    live_blocks_before: int
    live_bytes_before: int
    live_blocks_after: int
    peak_live_bytes: int
    peak_anonymous_bytes: int | None  # resident; None: not in the file
    live_curve: list[int]  # bytes, at equal intervals

    @property
    def events_a_second(self) -> float:
        return self.events / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Blocks:
    """One row a block, or a sample."""

    sizes: Integers  # bytes requested
    counts: Doubles  # blocks that it stands for
    lived_ns: Integers  # of those that were freed
    is_seen: Flags  # its allocation
    is_freed: Flags
    is_elsewhere: Flags  # freed by another thread

    def at(self, rows: Flags) -> Blocks:
        return Blocks(*(column[rows] for column in vars(self).values()))


class Tally:
    """The sums of blocks, by powers of two of their sizes; a block stands for a number of them."""

    def __init__(self) -> None:
        self.is_there = np.zeros(POWERS, np.bool_)
        # Blocks whose allocation was seen, and their bytes; live bytes; and freed blocks.
        self.blocks, self.bytes, self.live_bytes, self.freed = np.zeros((4, POWERS))
        # Those that were seen from end to end, and those of them that another thread freed.
        self.ended, self.elsewhere = np.zeros((2, POWERS))
        self.lifetimes = np.zeros((POWERS, LIFETIMES))  # of those seen from end to end

    def add(self, blocks: Blocks) -> None:
        powers, counts = power_of_size(blocks.sizes), blocks.counts
        is_end = blocks.is_seen & blocks.is_freed
        self.is_there[powers] = True
        for total, rows, values in (
            (self.blocks, blocks.is_seen, counts),
            (self.bytes, blocks.is_seen, counts * blocks.sizes),
            (self.live_bytes, ~blocks.is_freed, counts * blocks.sizes),
            (self.freed, blocks.is_freed, counts),
            (self.ended, is_end, counts),
            (self.elsewhere, is_end & blocks.is_elsewhere, counts),
        ):
            np.add(total, np.bincount(powers[rows], values[rows], POWERS), out=total)
        places = (np.log2(np.maximum(blocks.lived_ns[is_end], 1)) * PARTS).astype(np.int64)
        np.add.at(self.lifetimes, (powers[is_end], places), counts[is_end])

    def lives_ns(self, *shares: float, power: int | slice = ALL) -> list[float]:
        """Quantiles of the lifetimes that were seen; nothing without any."""
        reached = np.cumsum(self.lifetimes[power].reshape(-1, LIFETIMES).sum(axis=0))
        if not reached[-1]:
            return []
        places = (int(np.searchsorted(reached, share * reached[-1])) for share in shares)
        return [float(2 ** ((place + 0.5) / PARTS)) for place in places]

    @property
    def freed_elsewhere(self) -> float:
        return float(self.elsewhere.sum() / self.ended.sum()) if self.ended.any() else 0.0

    def row(self, power: int | slice = ALL) -> tuple[int, int, int, float | None]:
        """As Row has it."""
        blocks, count, live = (
            round(float(one[power].sum())) for one in (self.blocks, self.bytes, self.live_bytes)
        )
        return blocks, count, live, next(iter(self.lives_ns(0.5, power=power)), None)

    @property
    def figures(self) -> dict[str, Any]:
        blocks, allocated_bytes, live_bytes, _ = self.row()
        names = (f"p{100 * share:g}" for share in QUANTILES)
        powers = np.flatnonzero(self.is_there).tolist()
        return {
            "allocated_blocks": blocks,
            "allocated_bytes": allocated_bytes,
            "freed_blocks": round(float(self.freed.sum())),
            "live_bytes_after": live_bytes,
            "freed_elsewhere": self.freed_elsewhere,
            "life_quantiles_ns": dict(zip(names, self.lives_ns(*QUANTILES), strict=False)),
            "sizes": [SizeRow(*self.row(power), 1 << power) for power in powers],
        }


def ended_in(step: Step) -> Blocks:
    """The blocks that were freed."""
    rows, events = np.flatnonzero(step.lives.events.ops == Op.FREE), step.lives.events
    lived_ns = np.maximum(events.times_ns[rows] - step.born_ns[rows], 0)
    return Blocks(
        step.sizes_before[rows],
        np.ones(len(rows)),
        lived_ns,
        step.is_seen[rows],
        np.ones(len(rows), np.bool_),
        events.threads[rows] != step.born_by[rows],
    )


def left(living: Living) -> Iterator[Blocks]:
    """The blocks that live, some at a time."""
    _, _, all_seen, all_sizes = living.blocks.columns
    for start in range(0, len(all_sizes), BLOCKS_AT_ONCE):
        is_seen, sizes = (column[start : start + BLOCKS_AT_ONCE] for column in (all_seen, all_sizes))
        zeros = np.zeros(len(sizes), np.int64)
        is_not = zeros.astype(np.bool_)
        yield Blocks(sizes, np.ones(len(sizes)), zeros, is_seen, is_not, is_not)


def power_of_size(sizes: Integers | Words) -> Integers:
    """The logarithm of the next power of two; sizes of up to 8 bytes are one row."""
    return np.maximum(np.ceil(np.log2(np.maximum(sizes, 1).astype(np.float64))).astype(np.int64), 3)


class Count:
    """The figures of a trace, from its steps."""

    def __init__(self, extent: Extent) -> None:
        self._extent, self._tally, self._threads = extent, Tally(), set[int]()
        self._peak = self._before = 0
        self._times_ns = np.linspace(extent.first_ns, extent.last_ns, POINTS)
        self._live_bytes = np.zeros(POINTS, np.int64)

    def add(self, step: Step) -> None:
        events = step.lives.events
        is_live = events.ops == Op.LIVE
        self._threads.update(np.unique(events.threads[~is_live]).tolist())
        self._before += int(events.sizes[is_live].sum())
        self._peak = max(self._peak, int(step.live_bytes.max()))
        self._tally.add(ended_in(step))
        places = np.searchsorted(events.times_ns, self._times_ns, "right")
        self._live_bytes = np.where(places > 0, step.live_bytes[places - 1], self._live_bytes)

    def figures(self, living: Living, memory: Memory | None) -> TraceFigures:
        for blocks in left(living):
            self._tally.add(blocks)
        extent = self._extent
        return TraceFigures(
            **self._tally.figures,
            events=extent.events,
            seconds=(extent.last_ns - extent.first_ns) / NS_PER_S,
            threads=len(self._threads),
            live_blocks_before=extent.live_blocks,
            live_bytes_before=self._before,
            live_blocks_after=len(living.blocks),
            peak_live_bytes=self._peak,
            peak_anonymous_bytes=int(memory.anonymous_bytes.max(initial=0)) if memory is not None else None,
            live_curve=self._live_bytes.tolist(),
        )


def figures_of(trace: Trace) -> TraceFigures:
    count, living = Count(trace.extent), Living()
    for step in steps(trace, living):
        count.add(step)
    return count.figures(living, trace.memory)
