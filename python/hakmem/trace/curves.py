"""A trace over time, and its lifetimes by size: the data of its page."""

from __future__ import annotations

import numpy as np

from hakmem.layout.memory import Doubles, Integers
from hakmem.trace.figures import NS_PER_S, blocks_of, live_bytes_of, power_of_size
from hakmem.trace.lives import Lives
from hakmem.trace.memory import Memory
from hakmem.trace.words import Op

INTERVALS = 200
LIFETIME_ENDS_NS = (1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11)  # then longer ones, and blocks that stay


def curves_of(lives: Lives, memory: Memory | None) -> tuple[Doubles, dict[str, Doubles | Integers]]:
    """Seconds since the first event or sample, up to the last, at the ends of equal intervals; and by their
    names the figures there, or in the interval before.  Those of memory only where the file has them."""
    events, times = lives.events, lives.events.times_ns
    moments = [times] if memory is None else [times, memory.times_ns]
    first, last = (end([end(some) for some in moments if len(some)], default=0) for end in (min, max))
    edges = np.linspace(first, max(last, first + 1), INTERVALS + 1)
    span_s = float(edges[1] - edges[0]) / NS_PER_S

    def counted(rows: Integers) -> Integers:
        return np.histogram(times[rows], edges)[0]

    def at(moments_ns: Integers, values: Integers) -> Integers:
        """The last value at each end; 0 before the first."""
        return np.append(0, values)[np.searchsorted(moments_ns, edges[1:], "right")]

    curves: dict[str, Doubles | Integers] = {"live blocks": at(times, live_bytes_of(lives))}
    if memory is not None:
        curves["anonymous RSS"] = at(memory.times_ns, memory.anonymous_bytes)
        curves["committed by hakmem"] = at(memory.times_ns, memory.committed_bytes)
    deaths, blocks = lives.death_rows[lives.is_dead], blocks_of(lives).at(lives.is_dead)
    known = counted(deaths[blocks.is_seen])
    elsewhere = counted(deaths[blocks.is_seen & blocks.is_elsewhere])
    curves["allocated"] = counted(np.flatnonzero(events.ops == Op.TAKE)) / span_s
    curves["freed"] = counted(deaths) / span_s
    curves["by another thread"] = np.where(known, elsewhere / np.maximum(known, 1), np.nan)  # a share
    return (edges[1:] - first) / NS_PER_S, curves


def lifetimes_of(lives: Lives) -> list[tuple[int, list[int]]]:
    """For each doubling of sizes, with its largest, the blocks whose allocation was seen by LIFETIME_ENDS_NS;
    the last column is those that still live."""
    blocks, count = blocks_of(lives), len(LIFETIME_ENDS_NS) + 2
    blocks = blocks.at(blocks.is_seen)
    column = np.where(blocks.is_freed, np.searchsorted(LIFETIME_ENDS_NS, blocks.lived_ns, "right"), count - 1)
    powers = power_of_size(blocks.sizes)
    return [
        (1 << power, np.bincount(column[powers == power], minlength=count).tolist())
        for power in np.unique(powers).tolist()
    ]
