"""The words of rings, taken apart into events.

A word is an operation in its lowest 3 bits and what it says (src/profile/trace_ring.h).  Ticks become
nanoseconds by the CLOCK words, which tell both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from hakmem.layout.memory import Bytes, Flags, Integers, Numbers, Words


class Word(IntEnum):
    TIME = 0
    CLOCK = 1
    TAKE = 2
    REGION = 3
    FREE = 4
    RESIZE = 5
    SIZE = 6


class Op(IntEnum):
    TAKE = 0
    FREE = 1
    RESIZE = 2
    LIVE = 3  # a block that was there when the recording began


OPERATION_BITS, WHAT_BITS, REGION_SHIFT = 3, 29, 32
OPERATION_MASK = (1 << OPERATION_BITS) - 1
CLOCK_WORDS, SIZE_WORDS_MAX, SIZE_BITS = 8, 3, 27
SLAB_SHIFT, SLABS = 16, 64  # of an address; slabs whose last size a ring keeps
EVENTS = (Word.TAKE, Word.FREE, Word.RESIZE)
OPS = np.full(8, -1, np.int8)
OPS[list(EVENTS)] = Op.TAKE, Op.FREE, Op.RESIZE
AHEAD_MAX = 4  # events from the start of a realloc to its end
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
        numbers, words = np.empty(0, np.int64), np.empty(0, np.uint64)
        return cls(np.empty(0, np.int8), words, words, np.empty(0, np.uint8), numbers, numbers)

    def at(self, rows: Integers | Flags | slice) -> Events:
        return Events(*(column[rows] for column in vars(self).values()))

    @classmethod
    def joined(cls, parts: Sequence[Events]) -> Events:
        """The rows of all parts, one part after the other."""
        columns = zip(*(vars(part).values() for part in parts or [cls.none()]), strict=True)
        return cls(*map(np.concatenate, columns))


@dataclass(frozen=True)
class Clock:
    """The time in nanoseconds at some ticks, and the length of a tick: all processors share one clock of
    constant rate."""

    ticks: int = 0
    ns: int = 0
    slope: float = 1.0

    @classmethod
    def of(cls, ticks: Integers, clocks: Integers) -> Clock:
        """From the readings of all threads.  A thread may have been interrupted between the two readings of
        a CLOCK, so the earliest are right: the slope is that between the earliest of each half."""
        if not len(ticks):
            return cls()
        first, last = int(np.argmin(ticks)), int(np.argmax(ticks))
        since = ticks - ticks[first]
        slope = float(clocks[last] - clocks[first]) / max(1, int(since[last]))
        rest, is_early = clocks - clocks[first] - since * slope, since <= since[last] // 2
        halves = [np.flatnonzero(half) for half in (is_early, ~is_early)]
        if all(half.size for half in halves):
            one, other = (int(half[np.argmin(rest[half])]) for half in halves)
            slope = float(clocks[other] - clocks[one]) / int(ticks[other] - ticks[one])
        start_ns = int((clocks - (since * slope).astype(np.int64)).min())
        return cls(int(ticks[first]), start_ns, slope if slope > 0 else 1.0)

    def ns_of(self, ticks: Integers) -> Integers:
        return np.asarray(self.ns + ((ticks - self.ticks) * self.slope).astype(np.int64))


def clocks_of(words: Numbers) -> tuple[Integers, Integers]:
    """The ticks and nanoseconds of the CLOCK words."""
    places = np.flatnonzero((words & OPERATION_MASK) == Word.CLOCK)
    starts = places[: len(places) // CLOCK_WORDS * CLOCK_WORDS : CLOCK_WORDS]
    parts = [words[starts + part].astype(np.int64) >> OPERATION_BITS for part in range(6)]
    ticks, ns = (parts[one] | parts[one + 1] << WHAT_BITS | parts[one + 2] << 2 * WHAT_BITS for one in (0, 3))
    return ticks, ns


class Decoder:
    """One ring's words become events, some at a time.  A piece ends with an event, as the process publishes
    each event with the words before it."""

    def __init__(self) -> None:
        self.lost = 0  # events for which there was no room
        self._context = np.empty(0, np.uint32)  # the last CLOCK, the TIME after it, and the last REGION
        self._sizes = np.zeros(SLABS, np.int64)  # of the last TAKE of each slab
        self._recent = Events.none()

    def events_of(self, piece: Numbers) -> Events:
        """Their times are ticks."""
        words = np.concatenate([self._context, piece])
        operations = (words & OPERATION_MASK).astype(np.int8)
        what = words.astype(np.int64) >> OPERATION_BITS
        places = {operation: np.flatnonzero(operations == operation) for operation in Word}
        starts = places[Word.CLOCK][: len(places[Word.CLOCK]) // CLOCK_WORDS * CLOCK_WORDS : CLOCK_WORDS]
        ticks, _ = clocks_of(words)
        rows = np.flatnonzero(np.isin(operations, EVENTS)) if len(starts) else np.empty(0, np.int64)

        def last(at: Integers, values: Integers) -> Integers:
            """The value before each event; the first one where there is none."""
            return values[np.maximum(np.searchsorted(at, rows) - 1, 0)] if at.size else 0 * rows

        regions = last(places[Word.REGION], what[places[Word.REGION]])
        addresses = regions << REGION_SHIFT | what[rows] << OPERATION_BITS
        sizes, alignments = _told(operations, what, rows)
        takes = np.flatnonzero(operations[rows] == Word.TAKE)
        has_size = operations[rows[takes] - 1] == Word.SIZE
        sizes[takes] = self._of_slabs(sizes[takes], has_size, (addresses[takes] >> SLAB_SHIFT) % SLABS)
        events = Events(
            OPS[operations[rows]],
            addresses.astype(np.uint64),
            sizes.astype(np.uint64),
            alignments.astype(np.uint8),
            last(starts, what[starts + CLOCK_WORDS - 1]),
            last(starts, ticks) + last(places[Word.TIME], what[places[Word.TIME]]),
        )
        # The ring's first CLOCK tells of events lost in an earlier trace; each later piece begins with one.
        self.lost += int(what[starts[1:] + CLOCK_WORDS - 2].sum())
        kept = [words[starts[-1] : starts[-1] + CLOCK_WORDS]] if len(starts) else []
        times = places[Word.TIME]
        kept += [words[times[-1:]][times[-1:] > starts[-1]]] if len(starts) else []
        self._context = np.concatenate([*kept, words[places[Word.REGION][-1:]]])
        return events.at(~self._with_moves(events))

    def _of_slabs(self, sizes: Integers, has_size: Flags, slabs: Integers) -> Integers:
        """The size of each TAKE, or where it has none that of the slab's TAKE before."""
        sizes = np.concatenate([self._sizes, sizes])
        slabs = np.concatenate([np.arange(SLABS), slabs])
        has_size = np.concatenate([np.ones(SLABS, np.bool_), has_size])
        order = np.argsort(slabs, kind="stable")
        last = np.maximum.accumulate(np.where(has_size[order], np.arange(len(order)), 0))
        found = np.empty_like(sizes)
        found[order] = sizes[order[last]]
        self._sizes = found[order[np.append(np.diff(slabs[order]) > 0, True)]]
        return found[SLABS:]

    def _with_moves(self, events: Events) -> Flags:
        """realloc that moves a block resizes it to 0, takes one, or two and frees the first, and frees it:
        that free is marked.  Returns the rows of those resizes, which are not events."""
        both = Events.joined([self._recent, events])
        marks = np.flatnonzero((both.ops == Op.RESIZE) & (both.sizes == 0))
        first = len(self._recent)
        for ahead in (2, 4):
            ends = (marks + ahead)[marks + ahead < len(both)]
            before = ends - ahead
            is_end = (both.ops[ends] == Op.FREE) & (both.addresses[ends] == both.addresses[before])
            is_end &= ends >= first
            events.sizes[ends[is_end] - first] = MOVED
        self._recent = both.at(slice(max(0, len(both) - AHEAD_MAX), None))
        return np.asarray((events.ops == Op.RESIZE) & (events.sizes == 0))


def _told(operations: Numbers, what: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """Each event's bytes and alignment, by the SIZE words before it; else 0."""
    told = np.zeros((3, len(rows)), np.int64)  # the bytes' low and high part, and the alignment
    is_told = np.ones(len(rows), np.bool_)
    for before in range(1, SIZE_WORDS_MAX + 1):
        is_told &= operations[rows - before] == Word.SIZE
        some = np.flatnonzero(is_told)
        one = what[rows[some] - before]
        told[one >> SIZE_BITS, some] = one & ((1 << SIZE_BITS) - 1)
    return told[0] | told[1] << SIZE_BITS, told[2]
