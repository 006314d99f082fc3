"""The figures of a trace: rates, sizes, lifetimes, threads, and the live bytes over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hakmem.layout.memory import Doubles, Flags, Integers, Words
from hakmem.trace.lives import Lives
from hakmem.trace.memory import Memory
from hakmem.trace.words import Op

POINTS = 60
NS_PER_S = 1e9
QUANTILES = (0.5, 0.9, 0.99)


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

    @property
    def bytes(self) -> int:
        return round(float((self.counts * self.sizes).sum()))

    def lives_ns(self, *shares: float) -> list[float]:
        """Quantiles of the lifetimes that were seen; nothing without any."""
        ends = self.at(self.is_seen & self.is_freed)
        if not ends.sizes.size:
            return []
        order = np.argsort(ends.lived_ns, kind="stable")
        reached = np.cumsum(ends.counts[order])
        return [
            float(ends.lived_ns[order[np.searchsorted(reached, share * reached[-1])]]) for share in shares
        ]

    @property
    def freed_elsewhere(self) -> float:
        ends = self.at(self.is_seen & self.is_freed)
        return float(np.average(ends.is_elsewhere, weights=ends.counts)) if ends.sizes.size else 0.0

    @property
    def row(self) -> tuple[int, int, int, float | None]:
        """As Row has it."""
        seen, median_ns = self.at(self.is_seen), next(iter(self.lives_ns(0.5)), None)
        return round(seen.counts.sum()), seen.bytes, self.at(~self.is_freed).bytes, median_ns

    @property
    def figures(self) -> dict[str, Any]:
        """As Figures has them."""
        blocks, allocated_bytes, live_bytes, _ = self.row
        names = (f"p{100 * share:g}" for share in QUANTILES)
        powers = power_of_size(self.sizes)
        return {
            "allocated_blocks": blocks,
            "allocated_bytes": allocated_bytes,
            "freed_blocks": round(self.counts[self.is_freed].sum()),
            "live_bytes_after": live_bytes,
            "freed_elsewhere": self.freed_elsewhere,
            "life_quantiles_ns": dict(zip(names, self.lives_ns(*QUANTILES), strict=False)),
            "sizes": [SizeRow(*self.at(powers == n).row, 1 << n) for n in np.unique(powers).tolist()],
        }


def blocks_of(lives: Lives) -> Blocks:
    """Each stands for itself."""
    events, births, deaths = lives.events, lives.birth_rows, lives.death_rows
    return Blocks(
        lives.sizes.astype(np.int64),
        np.ones(len(births)),
        np.maximum(events.times_ns[deaths] - events.times_ns[births], 0),
        events.ops[births] == Op.TAKE,
        lives.is_dead,
        events.threads[births] != events.threads[deaths],
    )


def live_bytes_of(lives: Lives) -> Integers:
    """After each event."""
    change = np.zeros(len(lives.events), np.int64)
    first = lives.events.sizes[lives.birth_rows].astype(np.int64)
    np.add.at(change, lives.birth_rows, first)
    resized = np.flatnonzero((lives.events.ops == Op.RESIZE) & (lives.life_of_row >= 0))
    change[resized] = lives.events.sizes[resized].astype(np.int64) - _sizes_before(lives, resized, first)
    dead = lives.is_dead
    np.add.at(change, lives.death_rows[dead], -lives.sizes[dead].astype(np.int64))
    return np.asarray(np.cumsum(change))


def _sizes_before(lives: Lives, resized: Integers, first: Integers) -> Integers:
    """The size that each of these events replaces: that of the resize before, or of the birth."""
    numbers = lives.life_of_row[resized]
    order = np.argsort(numbers, kind="stable")
    before = first[numbers].copy()
    follows = numbers[order][1:] == numbers[order][:-1]
    before[order[1:][follows]] = lives.events.sizes[resized[order[:-1][follows]]].astype(np.int64)
    return before


def power_of_size(sizes: Integers | Words) -> Integers:
    """The logarithm of the next power of two; sizes of up to 8 bytes are one row."""
    return np.maximum(np.ceil(np.log2(np.maximum(sizes, 1).astype(np.float64))).astype(np.int64), 3)


def figures_of(lives: Lives, memory: Memory | None = None) -> TraceFigures:
    """From the first event to the last."""
    events, live, blocks = lives.events, live_bytes_of(lives), blocks_of(lives)
    is_event, times = events.ops != Op.LIVE, events.times_ns
    edges = np.linspace(times[0], times[-1], POINTS) if len(times) else np.zeros(0)
    before = blocks.at(~blocks.is_seen)
    return TraceFigures(
        **blocks.figures,
        events=int(is_event.sum()),
        seconds=int(times[-1] - times[0]) / NS_PER_S if len(times) else 0.0,
        threads=len(np.unique(events.threads[is_event])),
        live_blocks_before=len(before.sizes),
        live_bytes_before=before.bytes,
        live_blocks_after=int((~blocks.is_freed).sum()),
        peak_live_bytes=int(live.max(initial=0)),
        peak_anonymous_bytes=int(memory.anonymous_bytes.max(initial=0)) if memory is not None else None,
        live_curve=live[np.searchsorted(times, edges, "right") - 1].tolist(),
    )
