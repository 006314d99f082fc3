"""From the words of all rings to the lives of blocks, some at a time: memory does not grow with the events.

    pieces of words ── Decoder, one a ring ──▶ events ── merged by time ──▶ Follower ──▶ Lives

A recorder's turn reads each ring once.  When it begins, every event before that moment is in a ring, so all
of them have come when it ends.  Only an event whose thread was interrupted before it published it comes
later; it gets the earliest time that is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hakmem.layout.memory import Numbers
from hakmem.trace.lives import Follower, Frame, Lives
from hakmem.trace.words import Clock, Decoder, Events, clocks_of

WORDS_AT_ONCE = 1 << 17
SLACK_NS = 20_000_000  # times of events are exact to this
NEVER_NS = 1 << 62


class Piece(NamedTuple):
    """Words of one ring."""

    turn_ns: int  # CLOCK_MONOTONIC when the turn began
    ring: int
    words: Numbers


Pieces = Callable[[], Iterator[Piece]]  # in the order of turns; called more than once


@dataclass
class Resolver:
    """The lives that the words of all rings tell; then the figures."""

    pieces: Pieces
    frame: Frame = field(default_factory=Frame)
    frame_read_ns: int = 0  # when it had been read
    lost: int = 0  # events for which a ring had no room
    exchanged: int = 0  # pairs of events whose order was repaired
    unseen_frees: int = 0
    unknown_frees: int = 0

    def lives(self, progress: Callable[[int], None] = lambda _: None) -> Iterator[Lives]:
        """`progress`: gets the number of words so far."""
        clock, frame = self._clock(), self.frame
        if len(frame):
            # The takes of blocks that were allocated before the frame had been read tell more than it does.
            first = Follower(frame)
            for events, until_ns in self._merged(clock, {}, lambda _: None):
                first.follow(events, until_ns > self.frame_read_ns)
                if until_ns > self.frame_read_ns:
                    break
            frame = frame.without(np.concatenate([frame.addresses[:0], *first.taken_of_frame]))
        follower, decoders, has_begun = Follower(frame), dict[int, Decoder](), False
        for events, until_ns in self._merged(clock, decoders, progress):
            if not has_begun and (len(events) or until_ns == NEVER_NS):
                began_ns = int(events.times_ns[0]) if len(events) else self.frame_read_ns
                yield from frame.lives(began_ns, WORDS_AT_ONCE)
                has_begun = True
            follower.frame_is_over |= until_ns > self.frame_read_ns
            yield follower.follow(events)
        yield follower.follow(Events.none(), is_last=True)
        self.lost = sum(one.lost for one in decoders.values())
        self.exchanged, self.unseen_frees = follower.exchanged, follower.unseen_frees
        self.unknown_frees = follower.unknown_frees

    def _clock(self) -> Clock:
        ticks, clocks = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for piece in self.pieces():
            some_ticks, some_clocks = clocks_of(piece.words)
            ticks.append(some_ticks)
            clocks.append(some_clocks)
        return Clock.of(np.concatenate(ticks), np.concatenate(clocks))

    def _merged(
        self, clock: Clock, decoders: dict[int, Decoder], progress: Callable[[int], None]
    ) -> Iterator[tuple[Events, int]]:
        """Events in the order of their times, some at a time, and the time up to which all have come.  Those
        of one time stay in their thread's order."""
        held, waiting, count, told = Events.none(), list[Piece](), 0, 0
        turn_ns = until_ns = -NEVER_NS

        def merged() -> Events:
            events = Events.joined([held, *_decoded(waiting, decoders, clock, until_ns)])
            return events.at(np.argsort(events.times_ns, kind="stable"))

        for piece in self.pieces():
            if piece.turn_ns != turn_ns and count >= WORDS_AT_ONCE:
                events = merged()
                until_ns = max(until_ns, turn_ns - SLACK_NS)
                end = int(np.searchsorted(events.times_ns, until_ns))
                held, waiting, told, count = events.at(slice(end, None)), [], told + count, 0
                progress(told)
                yield events.at(slice(end)), until_ns
            turn_ns, count = piece.turn_ns, count + len(piece.words)
            waiting.append(piece)
        progress(told + count)
        yield merged(), NEVER_NS


def _decoded(
    pieces: list[Piece], decoders: dict[int, Decoder], clock: Clock, least_ns: int
) -> Iterator[Events]:
    """The events of each ring.  One that is older came late."""
    rings: dict[int, list[Numbers]] = {}
    for piece in pieces:
        rings.setdefault(piece.ring, []).append(piece.words)
    for ring, words in rings.items():
        events = decoders.setdefault(ring, Decoder()).events_of(np.concatenate(words))
        events.times_ns = np.maximum(clock.ns_of(events.times_ns), least_ns)
        yield events
