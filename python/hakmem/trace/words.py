"""The words of rings, taken apart into events.

A word is an operation in its lowest 3 bits and what it says (src/profile/trace_ring.h).  Ticks become
nanoseconds by the CLOCK words, which tell both."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from hakmem.layout.memory import Bytes, Integers, Numbers, Words


class Word(IntEnum):
    """The operation of a word."""

    TIME = 0
    CLOCK = 1
    TAKE = 2
    REGION = 3
    FREE = 4
    RESIZE = 5
    SIZE = 6


class Op(IntEnum):
    """The kind of an event."""

    TAKE = 0
    FREE = 1
    RESIZE = 2
    LIVE = 3  # a block that was there when the recording began


OPERATION_BITS, WHAT_BITS, REGION_SHIFT = 3, 29, 32
CLOCK_WORDS, SIZE_WORDS_MAX, SIZE_BITS = 8, 3, 27
SLAB_SHIFT, SLABS = 16, 64  # of an address; slabs whose last size a ring keeps
EVENTS = (Word.TAKE, Word.FREE, Word.RESIZE)
OPS = np.full(8, -1, np.int8)
OPS[list(EVENTS)] = Op.TAKE, Op.FREE, Op.RESIZE
MOVED = 1  # the size of a free by realloc: the block went to the one that its thread has just taken


@dataclass
class Events:
    """One row an event, in the order of their thread, or of all."""

    ops: Numbers  # Op
    addresses: Words
    sizes: Words  # bytes requested; of a free 0, or MOVED
    alignments: Bytes  # log2
    threads: Integers
    times_ns: Integers  # CLOCK_MONOTONIC

    def __len__(self) -> int:
        return len(self.ops)

    @classmethod
    def none(cls) -> Events:
        """No events."""
        numbers, words = np.empty(0, np.int64), np.empty(0, np.uint64)
        return cls(np.empty(0, np.int8), words, words, np.empty(0, np.uint8), numbers, numbers)

    def at(self, rows: Integers) -> Events:
        """These rows, in this order."""
        return Events(*(column[rows] for column in vars(self).values()))


@dataclass
class Taken:
    """The contents of a ring."""

    events: Events  # their times are ticks, until set_times
    lost: int  # events for which there was no room
    clock_ticks: Integers
    clock_ns: Integers


def set_times(rings: list[Taken]) -> None:
    """Ticks become nanoseconds: all processors have one clock, which goes straight.  A thread may have been
    interrupted between the two readings of a CLOCK: the earliest are right."""
    ticks, clocks = (
        np.concatenate([getattr(ring, name) for ring in rings]) for name in ("clock_ticks", "clock_ns")
    )
    if not len(ticks):
        return
    first, last = int(np.argmin(ticks)), int(np.argmax(ticks))
    span = int(ticks[last] - ticks[first])
    slope = float(clocks[last] - clocks[first]) / span if span else 1.0
    expected = ((ticks - ticks[first]) * slope).astype(np.int64)
    start_ns = int((clocks - expected).min())
    for ring in rings:
        since = (ring.events.times_ns - ticks[first]) * slope
        ring.events.times_ns = start_ns + since.astype(np.int64)


def _with_moves(events: Events) -> Events:
    """realloc that moves a block resizes it to 0, takes one, or two and frees the first, and frees it."""
    marks = np.flatnonzero((events.ops == Op.RESIZE) & (events.sizes == 0))
    for ahead in (2, 4):
        ends = np.minimum(marks + ahead, len(events) - 1)
        is_end = (events.ops[ends] == Op.FREE) & (events.addresses[ends] == events.addresses[marks])
        events.sizes[ends[is_end]] = MOVED
    return events.at(np.delete(np.arange(len(events)), marks))


def _last_of_slab(sizes: Integers, has_size: Numbers, slabs: Integers) -> Integers:
    """The size of each row, or where it has none that of the slab's row before."""
    order = np.argsort(slabs, kind="stable")
    last = np.maximum.accumulate(np.where(has_size[order], np.arange(len(order)), 0))
    found = np.empty_like(sizes)
    found[order] = sizes[order[last]]
    return found


def events_of(words: Numbers) -> Taken:
    """The events of one ring, from its first word on."""
    operations = (words & ((1 << OPERATION_BITS) - 1)).astype(np.int8)
    what = words.astype(np.int64) >> OPERATION_BITS
    places = {operation: np.flatnonzero(operations == operation) for operation in Word}
    starts = places[Word.CLOCK][: len(places[Word.CLOCK]) // CLOCK_WORDS * CLOCK_WORDS : CLOCK_WORDS]
    parts = [what[starts + part] for part in range(CLOCK_WORDS)]
    ticks, clock_ns = (
        parts[first] | parts[first + 1] << WHAT_BITS | parts[first + 2] << 2 * WHAT_BITS for first in (0, 3)
    )
    rows = np.flatnonzero(np.isin(operations, EVENTS)) if len(starts) else np.empty(0, np.int64)

    def last(at: Integers, values: Integers) -> Integers:
        """The value before each event; the first one where there is none."""
        return values[np.maximum(np.searchsorted(at, rows) - 1, 0)] if at.size else 0 * rows

    regions = last(places[Word.REGION], what[places[Word.REGION]])
    addresses = regions << REGION_SHIFT | what[rows] << OPERATION_BITS
    told = np.zeros((3, len(rows)), np.int64)  # the bytes' low and high part, and the alignment
    is_told = np.ones(len(rows), bool)
    for before in range(1, SIZE_WORDS_MAX + 1):
        is_told &= operations[rows - before] == Word.SIZE
        some = np.flatnonzero(is_told)
        one = what[rows[some] - before]
        told[one >> SIZE_BITS, some] = one & ((1 << SIZE_BITS) - 1)
    sizes = told[0] | told[1] << SIZE_BITS
    takes = np.flatnonzero(operations[rows] == Word.TAKE)
    slabs = (addresses[takes] >> SLAB_SHIFT) % SLABS
    sizes[takes] = _last_of_slab(sizes[takes], operations[rows[takes] - 1] == Word.SIZE, slabs)
    events = Events(
        OPS[operations[rows]],
        addresses.astype(np.uint64),
        sizes.astype(np.uint64),
        told[2].astype(np.uint8),
        last(starts, parts[7]),
        last(starts, ticks) + last(places[Word.TIME], what[places[Word.TIME]]),
    )
    # A first CLOCK tells of events lost in an earlier trace.
    return Taken(_with_moves(events), int(parts[6][1:].sum()), ticks, clock_ns)
