"""Events of all threads in one order, and the blocks that they are of.

Each ring's order is certain; the order of two rings only to the 1 to 3 µs of a TIME word.  But the events of
an address alternate: it is taken, freed, taken again.  Where two neighbours of different threads do not, and
lie that close, they are exchanged.  Where an address is taken that is taken already, its free was not seen,
and is put before.  A free of an address that is not taken is dropped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from hakmem.layout.memory import Flags, Integers, Words
from hakmem.trace.table import Table
from hakmem.trace.words import Events, Op

NEAR_NS = 10_000
NO_ADDRESS = np.uint64((1 << 64) - 1)
UNKNOWN = -1  # instead of an Op: whether the address is taken


@dataclass
class Lives:
    """Events in their order, each with the number of its block: the blocks are numbered by their allocations,
    and those that were live at the start come first.  A trace is a sequence of these."""

    events: Events
    numbers: Integers

    def __len__(self) -> int:
        return len(self.numbers)

    def at(self, rows: Integers | Flags | slice) -> Lives:
        return Lives(self.events.at(rows), self.numbers[rows])


@dataclass
class Frame:
    """The blocks that were live when a recording began, in any order."""

    addresses: Words = field(default_factory=lambda: np.empty(0, np.uint64))
    sizes: Words = field(default_factory=lambda: np.empty(0, np.uint64))  # of their classes

    def __len__(self) -> int:
        return len(self.addresses)

    def without(self, addresses: Words) -> Frame:
        kept = ~np.isin(self.addresses, addresses)
        return Frame(self.addresses[kept], self.sizes[kept])

    def lives(self, time_ns: int, step: int) -> Iterator[Lives]:
        """Some at a time; of no thread."""
        for start in range(0, len(self), step):
            sizes = self.sizes[start : start + step]
            count, zeros = len(sizes), np.zeros(len(sizes), np.int64)
            ops = np.full(count, Op.LIVE, np.int8)
            times = np.full(count, time_ns, np.int64)
            numbers = start + np.arange(count)
            events = Events(ops, numbers.astype(np.uint64), sizes, zeros.astype(np.uint8), zeros, times)
            yield Lives(events, numbers)


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


def _exchange(events: Events, rows: Integers) -> int:
    """Two passes: freed, FREED, TAKEN; then taken, TAKEN, FREED where no other take follows.  Returns the
    number of pairs."""
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
    return exchanged


def _with_frees(events: Events, rows: Integers, places: Integers) -> tuple[Events, Integers]:
    """With a free before each of the takes at these places of the sequence.  Returns the new order, too."""
    before = np.sort(rows[places])
    shifts = np.cumsum(np.bincount(before, minlength=len(events)))
    events = Events(*(np.insert(column, before, column[before]) for column in vars(events).values()))
    frees = before + np.arange(len(before))
    events.ops[frees], events.sizes[frees], events.alignments[frees] = Op.FREE, 0, 0
    rows = rows + shifts[rows]
    return events, np.insert(rows, places, rows[places] - 1)


class Follower:
    """Follows each address through the events of a trace, which come in the order of their times, some at a
    time.  An address that is taken has 16 bytes in its table, others have none."""

    def __init__(self, frame: Frame) -> None:
        order = np.argsort(frame.addresses, kind="stable")
        self._taken = Table(frame.addresses[order], order)  # address → block
        self._of_frame = self._begun = len(frame)  # blocks
        self._held = Events.none()
        self.frame_is_over = not len(frame)  # from now on an address that is not in the table is free
        self.taken_of_frame: list[Words] = []  # addresses of the frame's blocks that were taken later
        self.exchanged = self.unseen_frees = self.unknown_frees = 0

    def follow(self, events: Events, is_last: bool = False) -> Lives:
        """The events whose order is settled: those of the last NEAR_NS come with the next ones."""
        events = Events.joined([self._held, events])
        if not len(events):
            return Lives(events, np.empty(0, np.int64))
        states = self._states(np.unique(events.addresses), int(events.times_ns[0]))
        count = len(states)
        events = Events.joined([states, events])
        rows = np.argsort(events.addresses, kind="stable")
        self.exchanged += _exchange(events, rows)
        if not is_last:
            settled = np.searchsorted(events.times_ns, events.times_ns[-1] - 2 * NEAR_NS, "right")
            end = max(count, int(settled))
            self._held, events, rows = events.at(slice(end, None)), events.at(slice(end)), rows[rows < end]
        by = _Sequence(events, rows)
        again = by.is_op(0, Op.TAKE, Op.LIVE, Op.RESIZE) & by.is_same & by.is_op(1, Op.TAKE)
        places = by.places(again) + 1
        self.unseen_frees += len(places)
        is_frame = events.ops[rows[places - 1]] == Op.LIVE
        self.taken_of_frame.append(events.addresses[rows[places[is_frame]]])
        return self._numbered(*_with_frees(events, rows, places), count)

    def _states(self, addresses: Words, time_ns: int) -> Events:
        """An event for each address before all others: it is taken, or free."""
        places, is_taken = self._taken.find(addresses)
        ops = np.full(len(addresses), Op.FREE if self.frame_is_over else UNKNOWN, np.int8)
        blocks = self._taken.at(0, places[is_taken])
        ops[is_taken] = np.where(blocks < self._of_frame, Op.LIVE, Op.TAKE)
        zeros = np.zeros(len(addresses), np.int64)
        return Events(ops, addresses, zeros.astype(np.uint64), zeros.astype(np.uint8), zeros - 1,
                      zeros + time_ns - 2 * NEAR_NS)  # fmt: skip

    def _numbered(self, events: Events, rows: Integers, count: int) -> Lives:
        """The events after the first `count`, which are states, without those of unknown blocks."""
        ops, addresses, places = events.ops[rows], events.addresses[rows], np.arange(len(rows))
        begins = (ops == Op.TAKE) | (ops == Op.LIVE)
        is_first = np.append(True, addresses[1:] != addresses[:-1])[: len(rows)]
        begin_at = np.maximum.accumulate(np.where(begins, places, -1))
        end_at = np.maximum.accumulate(np.where(ops == Op.FREE, places, -1))
        ended_before = np.append(-1, end_at)[: len(rows)]
        first_at = np.maximum.accumulate(np.where(is_first, places, 0))
        is_known = (begin_at >= first_at) & (begins | (ended_before < begin_at))
        numbers = np.full(len(events), -1, np.int64)
        found, is_taken = self._taken.find(events.addresses[:count])
        numbers[:count][is_taken] = self._taken.at(0, found[is_taken])
        is_new = np.arange(len(events)) >= count
        takes = np.flatnonzero(is_new & (events.ops == Op.TAKE))
        numbers[takes] = self._begun + np.arange(len(takes))
        self._begun += len(takes)
        block = np.full(len(events), -1, np.int64)
        block[rows[is_known]] = numbers[rows[begin_at[is_known]]]
        self.unknown_frees += int((is_new & (events.ops == Op.FREE) & (block < 0)).sum())
        last = rows[np.append(is_first[1:], True)]  # of each address, in the order of addresses
        lives = last[(block[last] >= 0) & (events.ops[last] != Op.FREE)]
        self._update(found, is_taken, events.addresses[lives], block[lives])
        kept = np.flatnonzero(is_new & (block >= 0))
        return Lives(events.at(kept), block[kept])

    def _update(self, found: Integers, was_taken: Flags, addresses: Words, blocks: Integers) -> None:
        """`addresses` are taken now, and were there before where `was_taken` says so."""
        places, is_taken = self._taken.find(addresses)
        self._taken.put(0, places[is_taken], blocks[is_taken])
        self._taken.remove(np.setdiff1d(found[was_taken], places[is_taken], assume_unique=True))
        self._taken.add(addresses[~is_taken], blocks[~is_taken])
