"""The tab of sites in `hakmem top`: the heap profile of the process that is watched, switched on if the user
wants that.  Reading, switching and naming happen in other threads than the screen's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from hakmem.base.durations import duration_text
from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.base.sizes import bytes_text, counted, share_text
from hakmem.census.catalogue import sentence
from hakmem.profile.difference import Change, Difference, difference
from hakmem.profile.model import Profile
from hakmem.profile.watch import SiteWatch
from hakmem.target.target import Target
from hakmem.views.cells import Cell, Row, number, size
from hakmem.views.profile_text import interval_text, signed_bytes, site_text, span_text
from hakmem.views.screen import one_line
from hakmem.views.watching import Moment, View

ROWS_MAX = 200
SITE_COLUMNS_MAX = 60
TROUBLE_PAUSE_S = 2.0
NO_SPAN = (0.0, 0.0)
CHANCE = "~"  # growth that may be chance
OFFER = (
    "No heap profile is on in this process. o switches one on, without stopping the process, and off again "
    "when you leave top."
)
ASKED = "A heap profile was requested. It begins when the process next allocates or frees. o cancels it."
ENDED = "The profile has ended; its last figures stay."


def site_rows(moment: Moment) -> list[Row]:
    """The sites that hold most, and what makes them add up to the live bytes."""
    return list(_rows(moment.sites)) if moment.sites is not None else []


def _rows(found: Difference) -> Iterator[Row]:
    total = found.after.total_bytes
    held = sorted((one for one in found.changes if one.after.value), key=_held, reverse=True)
    yield from (_site_row(one, total) for one in held[:ROWS_MAX])
    rest, now, then = held[ROWS_MAX:], found.after, found.before
    more = (
        (counted(len(rest), "other site"), sum(map(_held, rest)), sum(one.bytes for one in rest), NO_SPAN),
        *(
            (name, one.value, one.value - old.value, one.interval)
            for (name, one), (_, old) in zip(now.rests, then.rests, strict=True)
        ),
    )
    for name, value, grown, (low, high) in more:
        if round(value):
            span = Cell(span_text(low, high) or "–", high - low)
            share = Cell(share_text(value, total), value)
            # No block of these was sampled: the remainder moves as the estimates of the sites do.
            yield [size(round(value)), _signed(grown, CHANCE), Cell(name, name), span, number(None), share]


def _held(change: Change) -> float:
    return change.after.value


def _site_row(change: Change, total: float) -> Row:
    low, high = change.after.interval
    name = one_line([site_text(change.frames).plain], SITE_COLUMNS_MAX)
    return [
        size(round(change.after.value)),
        _signed(change.bytes, "" if change.is_significant else CHANCE),
        Cell(name, name),
        Cell(interval_text(change.after), high - low),
        number(round(change.blocks_after.value)),
        Cell(share_text(change.after.value, total), change.after.value),
    ]


def _signed(value: float, mark: str = "") -> Cell:
    return Cell(mark + signed_bytes(value) if round(value) else "·", value)


SITES = View("sites", ("bytes", "grown", "<site", "95 % interval", "blocks", "share"), site_rows, 0)


class Sites:
    """The profile of one process.  `read`, `turn` and `close` take a while: they are for other threads."""

    def __init__(self, target: Target) -> None:
        self.shown: Difference | None = None
        self.is_on = False
        self._trouble = ""
        self._next_s = 0.0
        self._first: Profile | None = None  # growth is counted from it
        self._first_s = 0.0
        self._last: Profile | None = None
        self._named = 0
        self._watch = SiteWatch(target)

    @property
    def is_ours(self) -> bool:
        return self._watch.is_ours

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._next_s

    def read(self, interval_s: float) -> None:
        """Reads the profile, if one is on, and lets names be found.  ProcessGoneError."""
        with self._told():
            self.is_on = self._watch.is_on
            if self.is_on:
                self._take()
            self._next_s = time.monotonic() + self._watch.pause_s(interval_s)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """An error is the note for some time, but for the process's end."""
        try:
            yield
            self._trouble = ""
        except ProcessGoneError:
            raise
        except HakmemError as error:
            self._trouble, self._next_s = str(error), time.monotonic() + TROUBLE_PAUSE_S

    def _take(self) -> None:
        self._last = self._watch.read(since=self._first)
        if self._first is None:
            self.count_from_now()
        self._watch.names.find_soon(self._last)
        self.work_out()

    def work_out(self) -> None:
        """The table of the last reading, with the names that are known by now."""
        if self._first is None or self._last is None:
            return
        self._named = self._watch.names.rounds
        self._first.names = self._last.names
        self.shown = difference(self._first, self._last)

    @property
    def has_new_names(self) -> bool:
        """Since the table was worked out."""
        return self._last is not None and self._watch.names.rounds != self._named

    def count_from_now(self) -> None:
        """Growth is that since the last reading from now on."""
        self._first, self._first_s = self._last, time.monotonic()

    def turn(self) -> None:
        """Switches the profile on, or off if it was switched on here.  ProcessGoneError."""
        with self._told():
            if self.is_ours:
                self._watch.close()
            else:
                self._watch.switch_on()
                self._first = None
            self._next_s = 0.0

    def close(self) -> None:
        """Switches off the profile that it switched on."""
        self._watch.close()

    # ---- what is said about it -----------------------------------------------------------------------

    @property
    def note(self) -> str:
        """Whether a profile is on, whose, and what the keys do."""
        if self._trouble:
            return self._trouble
        if not self.is_on:
            return OFFER if self.shown is None else f"{ENDED} {OFFER}"
        if self.is_ours and self._last is not None and not self._last.header.rates:
            return ASKED
        whose = "o ends it; so does leaving top." if self.is_ours else "It was on already, and stays on."
        parts = [f"A heap profile is on. {whose}"]
        if self._last is not None:
            header = self._last.header
            count = sum(one.samples for one in self._last.samples)
            parts.append(f"{counted(count, 'sample')}, one in {bytes_text(header.rate_bytes)} now.")
            since = duration_text(round(time.monotonic() - self._first_s))
            parts.append(f"Growth is that of the last {since}; z: from now.")
        parts += map(sentence, self._watch.notes)
        parts += ["Names are being looked up."] if self._watch.names.is_busy else []
        return " ".join(parts)
