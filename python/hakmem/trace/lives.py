"""Events of all threads in one order, and the lives of blocks.

Each ring's order is certain; the order of two rings only to the 4,096 ticks of a TIME word.  But the events
of an address alternate: it is taken, freed, taken again.  Where two neighbours do not, and lie that close,
they are exchanged.  A take of an address that is taken already ends the life there: its free was not seen.
A free of an address that is not taken is dropped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hakmem.layout.memory import Flags, Integers, Words
from hakmem.trace.words import Events, Op

NEAR_NS = 10_000


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

    @property
    def is_dead(self) -> Flags:
        return np.asarray(self.death_rows >= 0)

    @property
    def lifetimes_ns(self) -> Integers:
        """How long blocks lived whose birth and end were seen."""
        births, deaths = self.birth_rows[self.is_dead], self.death_rows[self.is_dead]
        is_seen = self.events.ops[births] == Op.TAKE
        times = self.events.times_ns
        return np.asarray(np.maximum(times[deaths[is_seen]] - times[births[is_seen]], 0))

    @property
    def freed_elsewhere(self) -> Flags:
        """Which of the same blocks another thread freed."""
        births, deaths = self.birth_rows[self.is_dead], self.death_rows[self.is_dead]
        is_seen = self.events.ops[births] == Op.TAKE
        threads = self.events.threads
        return np.asarray(threads[births[is_seen]] != threads[deaths[is_seen]])


def merged(parts: list[Events]) -> Events:
    """Stable: events of one time stay in their thread's order."""
    columns = [
        np.concatenate(column) for column in zip(*(vars(part).values() for part in parts), strict=True)
    ]
    events = Events(*columns)
    return events.at(np.argsort(events.times_ns, kind="stable"))


def _by_address(events: Events) -> Integers:
    return np.asarray(np.lexsort((np.arange(len(events)), events.addresses)))


def _without_twice(events: Events, rows: Integers) -> Integers:
    """A block that was taken while the live ones were read is known by its take alone."""
    ops, addresses = events.ops[rows], events.addresses[rows]
    is_twice = (ops[:-1] == Op.LIVE) & (ops[1:] == Op.TAKE) & (addresses[1:] == addresses[:-1])
    return np.asarray(rows[np.append(~is_twice, np.ones(min(1, len(rows)), np.bool_))])


def _exchange(events: Events, rows: Integers) -> int:
    """Exchanges take and free where an address is taken twice and freed right after, in `rows`."""
    ops, addresses, times = events.ops[rows], events.addresses[rows], events.times_ns[rows]
    is_take = ops == Op.TAKE
    is_same = addresses[1:] == addresses[:-1]
    if len(rows) < 3:
        return 0
    first = is_take[:-2] & is_take[1:-1] & (ops[2:] == Op.FREE) & is_same[:-1] & is_same[1:]
    places = np.flatnonzero(first & (times[2:] - times[1:-1] <= NEAR_NS)) + 1
    rows[places], rows[places + 1] = rows[places + 1], rows[places].copy()
    return len(places)


def lives_of(events: Events) -> Lives:
    """Follows each address through its events."""
    rows = _without_twice(events, _by_address(events))
    exchanged = _exchange(events, rows)
    ops, addresses = events.ops[rows], events.addresses[rows]
    begins = (ops == Op.TAKE) | (ops == Op.LIVE)
    is_new_address = np.ones(len(rows), np.bool_)
    is_new_address[1:] = addresses[1:] != addresses[:-1]
    # The life of an event: the last begin at or before it, at the same address and not ended in between.
    numbers = np.cumsum(begins) - 1
    begin_places = np.flatnonzero(begins)
    begin_of = np.where(numbers >= 0, begin_places[np.maximum(numbers, 0)] if begin_places.size else -1, -1)
    first_of_address = np.maximum.accumulate(np.where(is_new_address, np.arange(len(rows)), 0))
    is_known = (begin_of >= first_of_address) & (begin_of >= 0)
    ends = (ops == Op.FREE) & is_known
    end_numbers = numbers[ends]
    _, first_ends = np.unique(end_numbers, return_index=True)
    end_places = np.flatnonzero(ends)[first_ends]
    deaths = np.full(len(begin_places), -1, np.int64)
    deaths[numbers[end_places]] = rows[end_places]
    ended_at = np.full(len(begin_places), len(rows), np.int64)
    ended_at[numbers[end_places]] = end_places
    is_after_end = is_known & (np.arange(len(rows)) > ended_at[np.maximum(numbers, 0)])
    life = np.where(is_known & ~is_after_end, numbers, -1)
    unknown = int(((ops == Op.FREE) & (life < 0)).sum())
    # Taken again without a free.
    again = begins[1:] & ~is_new_address[1:] & (life[:-1] >= 0) & (ops[:-1] != Op.FREE)
    again_places = np.flatnonzero(again) + 1
    deaths[life[again_places - 1]] = rows[again_places]
    sizes = events.sizes[rows[begin_places]].copy()
    resized = np.flatnonzero((ops == Op.RESIZE) & (life >= 0))
    sizes[life[resized]] = events.sizes[rows[resized]]
    return _in_order(events, rows, begin_places, deaths, sizes, life, exchanged, len(again_places), unknown)


def _in_order(
    events: Events,
    rows: Integers,
    begin_places: Integers,
    deaths: Integers,
    sizes: Words,
    life: Integers,
    exchanged: int,
    unseen: int,
    unknown: int,
) -> Lives:
    """Numbers the lives by their births."""
    births = rows[begin_places]
    order = np.argsort(births, kind="stable")
    number_of = np.empty(len(order), np.int64)
    number_of[order] = np.arange(len(order))
    life_of_row = np.full(len(events), -1, np.int64)
    life_of_row[rows] = np.where(life >= 0, number_of[np.maximum(life, 0)] if len(order) else -1, -1)
    return Lives(events, births[order], deaths[order], sizes[order], life_of_row, exchanged, unseen, unknown)
