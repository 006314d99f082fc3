"""A trace over time, and its lifetimes by size: the data of its page."""

from __future__ import annotations

import numpy as np

from hakmem.layout.memory import Doubles, Integers
from hakmem.trace.figures import NS_PER_S, Blocks, LiveCurve, ended_in, left, power_of_size
from hakmem.trace.file import Trace
from hakmem.trace.living import Living, Step
from hakmem.trace.words import Op

INTERVALS = 200
LIFETIME_ENDS_NS = (1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11)  # then longer ones, and blocks that stay


class Curves:
    """Figures at the ends of equal intervals, or in the interval before: since the first event or sample, up
    to the last."""

    def __init__(self, trace: Trace) -> None:
        extent, memory = trace.extent, trace.memory
        ends = [extent.first_ns, extent.last_ns] if extent.events + extent.live_blocks else []
        ends += memory.times_ns[[0, -1]].tolist() if memory is not None and len(memory.times_ns) else []
        first, last = min(ends, default=0), max(ends, default=0)
        self._edges = np.linspace(first, max(last, first + 1), INTERVALS + 1)
        self._live, self._memory = LiveCurve(self._edges[1:]), memory
        self._allocated, self._freed, self._known, self._elsewhere = np.zeros((4, INTERVALS), np.int64)

    def add(self, step: Step) -> None:
        events = step.lives.events
        self._live.add(step)
        is_free = events.ops == Op.FREE
        is_elsewhere = events.threads != step.born_by
        for total, rows in (
            (self._allocated, events.ops == Op.TAKE),
            (self._freed, is_free),
            (self._known, is_free & step.is_seen),
            (self._elsewhere, is_free & step.is_seen & is_elsewhere),
        ):
            np.add(total, np.histogram(events.times_ns[rows], self._edges)[0], out=total)

    @property
    def seconds(self) -> Doubles:
        return np.asarray((self._edges[1:] - self._edges[0]) / NS_PER_S)

    def by_name(self) -> dict[str, Doubles | Integers]:
        """Those of memory only where the file has them."""
        memory, span_s = self._memory, float(self._edges[1] - self._edges[0]) / NS_PER_S
        found: dict[str, Doubles | Integers] = {"live blocks": self._live.values}
        if memory is not None:
            places = np.searchsorted(memory.times_ns, self._edges[1:], "right")
            found["anonymous RSS"] = np.append(0, memory.anonymous_bytes)[places]
            found["committed by hakmem"] = np.append(0, memory.committed_bytes)[places]
        found["allocated"], found["freed"] = self._allocated / span_s, self._freed / span_s
        share = self._elsewhere / np.maximum(self._known, 1)
        found["by another thread"] = np.where(self._known, share, np.nan)
        return found


class Lifetimes:
    """For each doubling of sizes the blocks whose allocation was seen, by LIFETIME_ENDS_NS."""

    def __init__(self) -> None:
        self._of_power: dict[int, Integers] = {}

    def add(self, step: Step) -> None:
        self._count(ended_in(step))

    def rows(self, living: Living) -> list[tuple[int, list[int]]]:
        """Each with its largest size; the last column is those that still live."""
        for blocks in left(living):
            self._count(blocks)
        return [(1 << power, counts.tolist()) for power, counts in sorted(self._of_power.items())]

    def _count(self, blocks: Blocks) -> None:
        blocks, count = blocks.at(blocks.is_seen), len(LIFETIME_ENDS_NS) + 2
        place = np.searchsorted(LIFETIME_ENDS_NS, blocks.lived_ns, "right")
        column, powers = np.where(blocks.is_freed, place, count - 1), power_of_size(blocks.sizes)
        for power in np.unique(powers).tolist():
            found = np.bincount(column[powers == power], minlength=count)
            self._of_power[power] = self._of_power.get(power, 0) + found
