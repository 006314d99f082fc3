"""Events of all threads in one order, and the lives of blocks.

Each ring's order is certain; the order of two rings only to the 1 to 3 µs of a TIME word.  But the events of
an address alternate: it is taken, freed, taken again.  Where two neighbours of different threads do not, and
lie that close, they are exchanged.  Where an address is taken that is taken already, its free was not seen,
and is put before.  A free of an address that is not taken is dropped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hakmem.layout.memory import Flags, Integers, Words
from hakmem.trace.words import Events, Op

NEAR_NS = 10_000
NO_ADDRESS = np.uint64((1 << 64) - 1)


@dataclass
class Lives:
    """One row a block, by the order of their takes."""

    events: Events  # of all threads, in order
    birth_rows: Integers  # of its events; of blocks that were there before, a row of Op.LIVE
    death_rows: Integers  # -1: it is live at the end
    sizes: Words  # bytes requested last
    life_of_row: Integers  # of each event its block; -1: dropped
    exchanged: int  # pairs of events whose order was repaired
    unseen_frees: int
    unknown_frees: int

    @classmethod
    def numbered(cls, events: Events, life_of_row: Integers, *repaired: int) -> Lives:
        """From the number of each event's block, in the order of their takes."""
        births = np.flatnonzero((events.ops == Op.TAKE) | (events.ops == Op.LIVE))
        deaths, sizes = np.full(len(births), -1, np.int64), events.sizes[births].copy()
        ends = np.flatnonzero((events.ops == Op.FREE) & (life_of_row >= 0))
        deaths[life_of_row[ends]] = ends
        resized = np.flatnonzero((events.ops == Op.RESIZE) & (life_of_row >= 0))
        sizes[life_of_row[resized]] = events.sizes[resized]
        return cls(events, births, deaths, sizes, life_of_row, *repaired)

    @property
    def is_dead(self) -> Flags:
        return np.asarray(self.death_rows >= 0)

    def _seen_ends(self) -> tuple[Integers, Integers]:
        """Births and deaths of the blocks of which both were seen."""
        is_seen = self.is_dead & (self.events.ops[self.birth_rows] == Op.TAKE)
        return self.birth_rows[is_seen], self.death_rows[is_seen]

    @property
    def lifetimes_ns(self) -> Integers:
        """How long blocks lived whose birth and end were seen."""
        births, deaths = self._seen_ends()
        times = self.events.times_ns
        return np.asarray(np.maximum(times[deaths] - times[births], 0))

    @property
    def freed_elsewhere(self) -> Flags:
        """Which of the same blocks another thread freed."""
        births, deaths = self._seen_ends()
        return np.asarray(self.events.threads[births] != self.events.threads[deaths])


def merged(parts: list[Events]) -> Events:
    """Stable: events of one time stay in their thread's order."""
    columns = [
        np.concatenate(column) for column in zip(*(vars(part).values() for part in parts), strict=True)
    ]
    events = Events(*columns)
    return events.at(np.argsort(events.times_ns, kind="stable"))


def _by_address(events: Events) -> Integers:
    """The rows of each address, in their order."""
    return np.asarray(np.lexsort((np.arange(len(events)), events.addresses)))


class _Sequence:
    """The events by address: which rows and their neighbours say."""

    def __init__(self, events: Events) -> None:
        self.rows = _by_address(events)
        self.ops = np.append(events.ops[self.rows], np.full(3, Op.FREE, np.int8))
        addresses = np.append(events.addresses[self.rows], np.full(3, NO_ADDRESS))
        self.is_same = np.append(addresses[1:] == addresses[:-1], False)  # as the next one's
        threads, times = events.threads[self.rows], events.times_ns[self.rows]
        may_be_wrong = (threads[1:] != threads[:-1]) & (times[1:] - times[:-1] <= NEAR_NS)
        self.may_be_wrong = (
            np.append(may_be_wrong, np.zeros(len(self.is_same) - len(may_be_wrong), np.bool_)) & self.is_same
        )
        self.count = len(self.rows)

    def is_op(self, ahead: int, *ops: Op) -> Flags:
        return np.isin(np.roll(self.ops, -ahead), ops)

    def same(self, ahead: int) -> Flags:
        """Whether the event so far ahead and its next one have one address."""
        return np.roll(self.is_same, -ahead)

    def places(self, found: Flags) -> Integers:
        return np.flatnonzero(found[: self.count])


def _without_exchanged(events: Events) -> tuple[Events, int]:
    """Two passes: freed, FREED, TAKEN; then taken, TAKEN, FREED where no other take follows."""
    exchanged = 0
    for is_second in (False, True):
        by = _Sequence(events)
        if is_second:
            found = by.is_op(0, Op.TAKE, Op.LIVE) & by.is_op(1, Op.TAKE) & by.is_op(2, Op.FREE)
            found &= ~(by.same(2) & by.is_op(3, Op.TAKE))
        else:
            found = by.is_op(0, Op.FREE) & by.is_op(1, Op.FREE) & by.is_op(2, Op.TAKE)
        found &= by.is_same & np.roll(by.may_be_wrong, -1)
        places = by.places(found) + 1
        order = np.arange(len(events))
        one, other = by.rows[places], by.rows[places + 1]
        order[one], order[other] = other, one
        times = events.times_ns
        events = events.at(order)
        events.times_ns = times
        exchanged += len(places)
    return events, exchanged


def _with_unseen(events: Events) -> tuple[Events, int]:
    """Without blocks that were taken while the live ones were read, which their takes tell; and with a free
    before each take of an address that is taken."""
    by = _Sequence(events)
    is_twice = by.is_op(0, Op.LIVE) & by.is_same & by.is_op(1, Op.TAKE)
    kept = np.ones(len(events), np.bool_)
    kept[by.rows[by.places(is_twice)]] = False
    events = events.at(np.flatnonzero(kept))
    by = _Sequence(events)
    again = by.is_op(0, Op.TAKE, Op.LIVE, Op.RESIZE) & by.is_same & by.is_op(1, Op.TAKE)
    before = np.sort(by.rows[by.places(again) + 1])
    columns = {name: np.insert(column, before, column[before]) for name, column in vars(events).items()}
    found = Events(**columns)
    frees = before + np.arange(len(before))
    found.ops[frees], found.sizes[frees], found.alignments[frees] = Op.FREE, 0, 0
    return found, len(before)


def lives_of(events: Events) -> Lives:
    """Follows each address through its events."""
    events, exchanged = _without_exchanged(events)
    events, unseen = _with_unseen(events)
    rows = _by_address(events)
    ops, addresses, places = events.ops[rows], events.addresses[rows], np.arange(len(rows))
    begins = (ops == Op.TAKE) | (ops == Op.LIVE)
    is_first = np.append(True, addresses[1:] != addresses[:-1])[: len(rows)]
    begin_at = np.maximum.accumulate(np.where(begins, places, -1))
    end_at = np.maximum.accumulate(np.where(ops == Op.FREE, places, -1))
    ended_before = np.append(-1, end_at)[: len(rows)]
    first_at = np.maximum.accumulate(np.where(is_first, places, 0))
    is_known = (begin_at >= first_at) & (begins | (ended_before < begin_at))
    life = np.full(len(events), -1, np.int64)
    number_of_row = np.cumsum((events.ops == Op.TAKE) | (events.ops == Op.LIVE)) - 1
    life[rows[is_known]] = number_of_row[rows[begin_at[is_known]]]
    unknown = int(((events.ops == Op.FREE) & (life < 0)).sum())
    return Lives.numbered(events, life, exchanged, unseen, unknown)
