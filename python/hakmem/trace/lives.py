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


def merged(parts: list[Events]) -> Events:
    """Stable: events of one time stay in their thread's order."""
    columns = [
        np.concatenate(column) for column in zip(*(vars(part).values() for part in parts), strict=True)
    ]
    events = Events(*columns)
    return events.at(np.argsort(events.times_ns, kind="stable"))


class _Sequence:
    """The events by address: which rows and their neighbours say.  Repairs keep the order of rows: they
    exchange events of one address, drop some, and put others between."""

    def __init__(self, events: Events, rows: Integers) -> None:
        self.rows = rows
        self.ops = np.append(events.ops[rows], np.full(3, Op.FREE, np.int8))
        addresses = np.append(events.addresses[rows], np.full(3, NO_ADDRESS))
        self.is_same = np.append(addresses[1:] == addresses[:-1], False)  # as the next one's
        threads, times = events.threads[rows], events.times_ns[rows]
        may_be_wrong = (threads[1:] != threads[:-1]) & (times[1:] - times[:-1] <= NEAR_NS)
        self.may_be_wrong = (
            np.append(may_be_wrong, np.zeros(len(self.is_same) - len(may_be_wrong), np.bool_)) & self.is_same
        )

    def is_op(self, ahead: int, *ops: Op) -> Flags:
        return np.isin(np.roll(self.ops, -ahead), ops)

    def same(self, ahead: int) -> Flags:
        """Whether the event so far ahead and its next one have one address."""
        return np.roll(self.is_same, -ahead)

    def places(self, found: Flags) -> Integers:
        return np.flatnonzero(found[: len(self.rows)])


def _without_exchanged(events: Events, rows: Integers) -> tuple[Events, int]:
    """Two passes: freed, FREED, TAKEN; then taken, TAKEN, FREED where no other take follows."""
    exchanged = 0
    for is_second in (False, True):
        by = _Sequence(events, rows)
        if is_second:
            found = by.is_op(0, Op.TAKE, Op.LIVE) & by.is_op(1, Op.TAKE) & by.is_op(2, Op.FREE)
            found &= ~(by.same(2) & by.is_op(3, Op.TAKE))
        else:
            found = by.is_op(0, Op.FREE) & by.is_op(1, Op.FREE) & by.is_op(2, Op.TAKE)
        found &= by.is_same & np.roll(by.may_be_wrong, -1)
        places = by.places(found) + 1
        one, other = rows[places], rows[places + 1]
        for name, column in vars(events).items():
            if name != "times_ns":
                column[one], column[other] = column[other], column[one]
        exchanged += len(places)
    return events, exchanged


def _with_unseen(events: Events, rows: Integers) -> tuple[Events, Integers, int]:
    """Without blocks that were taken while the live ones were read, which their takes tell; and with a free
    before each take of an address that is taken.  Returns the new order, too."""
    by = _Sequence(events, rows)
    is_twice = by.is_op(0, Op.LIVE) & by.is_same & by.is_op(1, Op.TAKE)
    kept = np.ones(len(events), np.bool_)
    kept[rows[by.places(is_twice)]] = False
    rows = (np.cumsum(kept) - 1)[rows[kept[rows]]]
    events = events.at(np.flatnonzero(kept))
    by = _Sequence(events, rows)
    again = by.is_op(0, Op.TAKE, Op.LIVE, Op.RESIZE) & by.is_same & by.is_op(1, Op.TAKE)
    places = by.places(again) + 1
    before = np.sort(rows[places])
    shifts = np.cumsum(np.bincount(before, minlength=len(events)))
    events = Events(*(np.insert(column, before, column[before]) for column in vars(events).values()))
    frees = before + np.arange(len(before))
    events.ops[frees], events.sizes[frees], events.alignments[frees] = Op.FREE, 0, 0
    rows = rows + shifts[rows]
    return events, np.insert(rows, places, rows[places] - 1), len(before)


def lives_of(events: Events) -> Lives:
    """Follows each address through its events, which are repaired in place."""
    rows = np.argsort(events.addresses, kind="stable")
    events, exchanged = _without_exchanged(events, rows)
    events, rows, unseen = _with_unseen(events, rows)
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
