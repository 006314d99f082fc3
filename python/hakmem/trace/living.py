"""The past of each block, while a trace is read some events at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hakmem.base.errors import HakmemError
from hakmem.layout.memory import Flags, Integers, Numbers
from hakmem.trace.file import Trace
from hakmem.trace.lives import Lives
from hakmem.trace.table import Table
from hakmem.trace.words import Op


@dataclass(frozen=True)
class Step:
    """Events, and for each of them the past of its block."""

    lives: Lives
    born_ns: Integers
    born_by: Integers  # a thread
    is_seen: Flags  # its allocation
    sizes_before: Integers  # of the block; 0 at its birth
    live_bytes: Integers  # of all blocks, after the event


@dataclass(frozen=True)
class Groups:
    """Events by their block, in the order of blocks."""

    order: Integers  # rows of the events
    starts: Integers  # of each block's events, in `order`
    of_row: Integers  # of each in `order`, which block

    @classmethod
    def of(cls, ops: Numbers, numbers: Integers) -> Groups:
        """HakmemError if a block is used after its end, or before its birth."""
        order = np.argsort(numbers, kind="stable")
        is_first = np.append(True, np.diff(numbers[order]) != 0)[: len(order)]
        is_last = np.append(is_first[1:], True)[: len(order)]
        sorted_ops = ops[order]
        is_begin = (sorted_ops == Op.TAKE) | (sorted_ops == Op.LIVE)
        if (is_begin & ~is_first).any() or ((sorted_ops == Op.FREE) & ~is_last).any():
            raise contradiction()
        return cls(order, np.flatnonzero(is_first), np.cumsum(is_first) - 1)

    @property
    def firsts(self) -> Integers:
        return self.order[self.starts]

    @property
    def lasts(self) -> Integers:
        return np.asarray(self.order[np.append(self.starts[1:], len(self.order))[: len(self.starts)] - 1])

    def before(self, values: Integers, at_start: Integers) -> Integers:
        """For each event the value of the block's event before, or that of the block at the start."""
        found = np.empty(len(self.order), np.int64)
        found[self.order[1:]] = values[self.order[:-1]]
        found[self.firsts] = at_start
        return found

    def spread(self, values: Integers) -> Integers:
        """For each event its block's value."""
        found = np.empty(len(self.order), values.dtype)
        found[self.order] = values[self.of_row]
        return found


def contradiction() -> HakmemError:
    return HakmemError("this trace contradicts itself: it is damaged")


SIZE = 3  # a column


class Living:
    """The blocks that live, 30 bytes each."""

    def __init__(self) -> None:
        none = np.empty(0, np.int64)
        # block → when and by which thread it was born, whether that was seen, and its bytes
        self.blocks = Table(none, none, none.astype(np.uint32), none.astype(np.bool_), none)
        self.bytes = 0

    def follow(self, lives: Lives) -> Step:
        """HakmemError if the events contradict those before."""
        events = lives.events
        groups = Groups.of(events.ops, lives.numbers)
        firsts, lasts = groups.firsts, groups.lasts
        is_born = (events.ops[firsts] == Op.TAKE) | (events.ops[firsts] == Op.LIVE)
        places, is_old = self.blocks.find(lives.numbers[firsts])
        if (is_born == is_old).any():
            raise contradiction()
        past = [
            np.where(is_born, new, self.blocks.at(column, places))
            for column, new in enumerate(
                (events.times_ns[firsts], events.threads[firsts], events.ops[firsts] == Op.TAKE, 0)
            )
        ]
        sizes = events.sizes.astype(np.int64)
        before = groups.before(sizes, past[-1])
        is_free = events.ops == Op.FREE
        live = self.bytes + np.cumsum(np.where(is_free, 0, sizes) - before)
        self.bytes = int(live[-1]) if len(live) else self.bytes
        stays, changed = ~is_free[lasts], sizes[lasts]
        self.blocks.put(SIZE, places[is_old], changed[is_old])
        self.blocks.remove(places[is_old & ~stays])
        new = is_born & stays
        self.blocks.add(lives.numbers[firsts][new], *(column[new] for column in past[:-1]), changed[new])
        born_ns, born_by, is_seen = (groups.spread(column) for column in past[:-1])
        return Step(lives, born_ns, born_by, is_seen.astype(np.bool_), before, live)


def steps(trace: Trace, living: Living) -> Iterator[Step]:
    """Each has events."""
    for lives in trace.lives():
        if len(lives):
            yield living.follow(lives)
