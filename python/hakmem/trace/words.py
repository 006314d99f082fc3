"""The words of rings, taken apart into events.

A word is an operation in its lowest 3 bits and what it says; TAKE_LARGE and RESIZE have a second one
(src/profile/trace_ring.h).  Ticks become nanoseconds by the CLOCK words, which tell both."""

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
    TAKE_LARGE = 3
    FREE = 4
    RESIZE = 5
    THREAD = 6
    LOST = 7


class Op(IntEnum):
    """The kind of an event."""

    TAKE = 0
    FREE = 1
    RESIZE = 2
    LIVE = 3  # a block that was there when the recording began


OPERATION_BITS, ALIGNMENT_SHIFT, SIZE_SHIFT = np.uint64(3), np.uint64(56), 48
OPERATION_MASK, ADDRESS_MASK = np.uint64(7), np.uint64((1 << 45) - 1)
BYTES_MASK = np.uint64((1 << 56) - 1)
WITH_SECOND = (Word.TAKE_LARGE, Word.RESIZE)
EVENTS = (Word.TAKE, Word.TAKE_LARGE, Word.FREE, Word.RESIZE)
OPS = np.full(8, -1, np.int8)
OPS[list(EVENTS)] = Op.TAKE, Op.TAKE, Op.FREE, Op.RESIZE
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


def seconds_of(words: Words, operations: Numbers) -> Integers:
    """The places of second words.  Any may look like an operation that has one."""
    with_second = np.flatnonzero(np.isin(operations, WITH_SECOND))
    seconds = with_second + 1
    if np.isin(seconds, with_second).any():
        kept, last = [], -1
        for place in with_second.tolist():
            if place != last:
                kept.append(last := place + 1)
        seconds = np.array(kept, np.int64)
    return seconds[seconds < len(words)]


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


def events_of(words: Words) -> Taken:
    """The events of one ring, from its first word on."""
    operations = (words & OPERATION_MASK).astype(np.int8)
    operations[seconds_of(words, operations)] = -1
    if len(operations) and operations[-1] in WITH_SECOND:
        operations[-1] = -1  # cut off
    what = (words >> OPERATION_BITS).astype(np.int64)
    rows = np.flatnonzero(np.isin(operations, EVENTS))
    kinds = operations[rows]

    def last(operation: Word, at: Integers) -> Integers:
        """The last value of an operation before each place; its first value where there is none; else 0."""
        places = np.flatnonzero(operations == operation)
        if not places.size:
            return np.zeros(len(at), np.int64)
        return what[places[np.maximum(np.searchsorted(places, at, "right") - 1, 0)]]

    clocks = np.flatnonzero(operations == Word.CLOCK)
    has_second = np.isin(kinds, WITH_SECOND)
    second = words[rows[has_second] + 1]
    sizes = np.where(kinds == Word.TAKE, words[rows] >> np.uint64(SIZE_SHIFT), np.uint64(0))
    alignments = np.zeros(len(rows), np.uint8)
    sizes[has_second] = second & BYTES_MASK
    alignments[has_second] = second >> ALIGNMENT_SHIFT
    events = Events(
        OPS[kinds],
        (words[rows] >> OPERATION_BITS & ADDRESS_MASK) << OPERATION_BITS,
        sizes,
        alignments,
        last(Word.THREAD, rows),
        last(Word.TIME, rows),
    )
    events = _with_moves(events)
    # A first word that tells of lost events tells of an earlier trace.
    lost = int(what[1:][operations[1:] == Word.LOST].sum())
    return Taken(events, lost, last(Word.TIME, clocks), what[clocks])
