"""The words of a ring, taken apart into events.

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


@dataclass
class Events:
    """One row an event, in the order of their thread, or of all."""

    ops: Numbers  # Op
    addresses: Words
    sizes: Words  # bytes requested; of a free 0
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

    events: Events
    lost: int  # events for which there was no room


def seconds_of(words: Words, operations: Integers) -> Integers:
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


def _times_ns(ticks: Integers, clock_ticks: Integers, clock_ns: Integers) -> Integers:
    """Between two clocks time is straight; a recording without two has ticks of a nanosecond."""
    if len(clock_ticks) < 2 or clock_ticks[-1] == clock_ticks[0]:
        offset = clock_ns[0] - clock_ticks[0] if len(clock_ticks) else 0
        return np.asarray(ticks + offset)
    slope = (clock_ns[-1] - clock_ns[0]) / (clock_ticks[-1] - clock_ticks[0])
    return np.asarray(clock_ns[0] + ((ticks - clock_ticks[0]) * slope).astype(np.int64))


def events_of(words: Words) -> Taken:
    """The events of one ring, from its first word on."""
    operations = (words & OPERATION_MASK).astype(np.int64)
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
        _times_ns(last(Word.TIME, rows), last(Word.TIME, clocks), what[clocks]),
    )
    return Taken(events, int(what[operations == Word.LOST].sum()))
