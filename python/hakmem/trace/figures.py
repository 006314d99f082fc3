"""The figures of a trace: rates, sizes, lifetimes, threads, and the live bytes over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hakmem.layout.memory import Integers, Words
from hakmem.trace.lives import Lives
from hakmem.trace.memory import Memory
from hakmem.trace.words import Op

POINTS = 60
NS_PER_S = 1e9
QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class SizeRow:
    """The blocks of more than half of `up_to_bytes`, and at most that."""

    up_to_bytes: int
    blocks: int
    bytes: int
    median_life_ns: float | None  # None: none was freed
    live_bytes: int  # at the end


@dataclass(frozen=True)
class TraceFigures:
    """They follow from its events."""

    events: int
    seconds: float
    threads: int
    allocated_blocks: int
    allocated_bytes: int
    freed_blocks: int
    live_blocks_before: int
    live_bytes_before: int
    live_blocks_after: int
    live_bytes_after: int
    peak_live_bytes: int
    peak_anonymous_bytes: int | None  # resident; None: not in the file
    freed_elsewhere: float  # share of the freed blocks that another thread had allocated
    life_quantiles_ns: dict[str, float]
    sizes: list[SizeRow]
    live_curve: list[int]  # bytes, at equal intervals

    @property
    def events_a_second(self) -> float:
        return self.events / self.seconds if self.seconds else 0.0


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


def _sizes(lives: Lives) -> list[SizeRow]:
    powers = power_of_size(lives.sizes)
    taken = lives.events.ops[lives.birth_rows] == Op.TAKE
    times = lives.events.times_ns
    spans = np.where(lives.is_dead, times[lives.death_rows] - times[lives.birth_rows], -1)
    rows = []
    for power in np.unique(powers).tolist():
        of_size = powers == power
        known = spans[of_size & taken & lives.is_dead]
        rows.append(
            SizeRow(
                1 << power,
                int((of_size & taken).sum()),
                int(lives.sizes[of_size & taken].sum()),
                float(np.median(known)) if known.size else None,
                int(lives.sizes[of_size & ~lives.is_dead].sum()),
            )
        )
    return rows


def figures_of(lives: Lives, memory: Memory | None = None) -> TraceFigures:
    """From the first event to the last."""
    events, live = lives.events, live_bytes_of(lives)
    taken = events.ops[lives.birth_rows] == Op.TAKE
    was_there, stays = ~taken, ~lives.is_dead
    is_event = events.ops != Op.LIVE
    times = events.times_ns
    span_ns = int(times[-1] - times[0]) if len(times) else 0
    edges = np.linspace(times[0], times[-1], POINTS) if len(times) else np.zeros(0)
    places = np.searchsorted(times, edges, "right") - 1
    seen, elsewhere = lives.lifetimes_ns, lives.freed_elsewhere
    begin = int(lives.sizes[was_there].sum())
    return TraceFigures(
        events=int(is_event.sum()),
        seconds=span_ns / NS_PER_S,
        threads=len(np.unique(events.threads[is_event])),
        allocated_blocks=int(taken.sum()),
        allocated_bytes=int(lives.sizes[taken].sum()),
        freed_blocks=int(lives.is_dead.sum()),
        live_blocks_before=int(was_there.sum()),
        live_bytes_before=begin,
        live_blocks_after=int(stays.sum()),
        live_bytes_after=int(lives.sizes[stays].sum()),
        peak_live_bytes=int(live.max(initial=0)),
        peak_anonymous_bytes=int(memory.anonymous_bytes.max(initial=0)) if memory is not None else None,
        freed_elsewhere=float(elsewhere.mean()) if elsewhere.size else 0.0,
        life_quantiles_ns={f"p{100 * q:g}": float(np.quantile(seen, q)) for q in QUANTILES if seen.size},
        sizes=_sizes(lives),
        live_curve=live[places].tolist(),
    )
