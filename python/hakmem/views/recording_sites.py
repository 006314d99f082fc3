"""The sites of a heap profile in a recording.

A line of a recording may carry readings of the profile, each with a time of its own; the names of a site come
with the first reading that has it:

    {…, "profile": [{"monotonic_s": …, "total_bytes", "before_bytes", "unsampled_bytes", "other_bytes",
                     "other_sites": …,
                     "names": [[["function", "file", line], …], …],      of sites that are new, numbered on
                     "columns": ["site", …], "rows": [[0, …], …]}, …]}

A thread makes the readings: snapshots wait neither for a walk of the samples nor for names."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Mapping
from dataclasses import astuple, dataclass, field, fields
from typing import Any

from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.base.validity import built
from hakmem.profile.estimate import Estimate
from hakmem.profile.labels import DEPTH, Labels
from hakmem.profile.model import Frame, Profile
from hakmem.profile.sites import site_table
from hakmem.profile.watch import SiteWatch
from hakmem.target.target import Target

KEY = "profile"
SITES_KEPT = 200  # of a reading, the largest
UNNAMED_MAX = 50  # readings that wait for names
END_PATIENCE_S = 10.0  # for names that are being looked up when the recording ends


@dataclass(frozen=True)
class SiteRow:
    site: int  # its number in the recording
    bytes: int
    error_bytes: int  # one standard error
    blocks: int
    samples: int

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.bytes, self.error_bytes**2, self.samples)


@dataclass(frozen=True)
class SiteReading:
    """All sites at one moment; with the other figures they add up to `total_bytes`."""

    monotonic_s: float
    total_bytes: int
    before_bytes: int  # from before the profile began
    unsampled_bytes: int  # in classes without a sample
    other_bytes: int  # of sites below the largest
    other_sites: int
    rows: list[SiteRow]


FIGURES = tuple(item.name for item in fields(SiteReading) if item.name != "rows")
COLUMNS = [item.name for item in fields(SiteRow)]
FRAME = [item.name for item in fields(Frame)]


@dataclass
class SiteHistory:
    sites: list[tuple[Frame, ...]] = field(default_factory=list)  # by number; innermost first
    readings: list[SiteReading] = field(default_factory=list)
    _numbers: dict[Hashable, int] = field(default_factory=dict)  # while it is recorded

    def add(self, profile: Profile, monotonic_s: float) -> dict[str, Any]:
        """A profile whose names were looked up; returns its part of a line."""
        labels, known = Labels(profile), len(self.sites)
        table = site_table(profile, labels.key(DEPTH))
        rows = []
        for site in table.sites[:SITES_KEPT]:
            if site.key not in self._numbers:
                self._numbers[site.key] = len(self.sites)
                self.sites.append(labels.site(site.stack, DEPTH))
            held, number = site.bytes, self._numbers[site.key]
            blocks = round(site.blocks.value)
            rows.append(SiteRow(number, round(held.value), round(held.error), blocks, held.samples))
        rest = table.sites[SITES_KEPT:]
        reading = SiteReading(
            monotonic_s,
            round(table.total_bytes),
            round(table.before.value),
            round(table.unsampled_bytes),
            round(sum(site.bytes.value for site in rest)),
            len(rest),
            rows,
        )
        self.readings.append(reading)
        return self.part(reading, known)

    def part(self, reading: SiteReading, known: int) -> dict[str, Any]:
        return {
            **{name: getattr(reading, name) for name in FIGURES},
            "names": [[list(astuple(frame)) for frame in frames] for frames in self.sites[known:]],
            "columns": COLUMNS,
            "rows": [list(astuple(row)) for row in reading.rows],
        }

    def read(self, data: Mapping[str, Any]) -> None:
        """Takes the readings of a line; ValueError, KeyError or TypeError if they are none."""
        for part in built(list, data.get(KEY, []), KEY):
            self.sites += [tuple(built(Frame, _row(FRAME, one)) for one in names) for names in part["names"]]
            rows = [_row(part["columns"], row) for row in part["rows"]]
            reading = built(SiteReading, {**part, "rows": rows})
            if not all(0 <= row.site < len(self.sites) for row in reading.rows):
                raise ValueError("a row of a site that has no name")
            if min((min(astuple(row)) for row in reading.rows), default=0) < 0:
                raise ValueError("a site has an invalid value")
            self.readings.append(reading)


def _row(columns: list[str], row: list[Any]) -> dict[str, Any]:
    return dict(zip(columns, row, strict=True))


class SiteRecorder:
    """Switches a profile on, unless one is on, and reads it until the recording ends."""

    def __init__(self, target: Target, every_s: float) -> None:
        self.notes: list[str] = []
        self._every_s = every_s
        self._watch = SiteWatch(target)
        self._history = SiteHistory()
        self._unnamed: list[tuple[Profile, float]] = []
        self._ready: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read_on, daemon=True)

    def __enter__(self) -> SiteRecorder:
        self._watch.switch_on()
        if not self._watch.is_ours:
            self.notes.append("the profile was on already, and stays on")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watch.close()

    def taken(self) -> dict[str, Any]:
        """The parts that became ready since the last call, for the next line."""
        with self._lock:
            ready, self._ready = self._ready, []
        return {KEY: ready} if ready else {}

    def last(self) -> dict[str, Any]:
        """`taken` with a last reading, for the last line."""
        self._ended.set()
        self._thread.join(END_PATIENCE_S)
        if self._thread.is_alive():
            self.notes.append("names were still being looked up: the last reading of the profile is missing")
        return self.taken()

    def _read_on(self) -> None:
        try:
            self._read()
            while not self._ended.wait(self._watch.pause_s(self._every_s)):
                self._read()
            self._read()
            for profile, _ in self._unnamed:
                self._watch.names.find(profile)
            self._pass_on()
        except ProcessGoneError:
            return  # the recording says so
        except HakmemError as error:
            self.notes.append(f"no more of the profile: {error}")

    def _read(self) -> None:
        """Readings go on while names are looked up: they wait for them, half of them where they are many."""
        self._unnamed.append((self._watch.read(), time.monotonic()))
        if len(self._unnamed) > UNNAMED_MAX:
            del self._unnamed[1:-1:2]
        self._pass_on()
        if self._unnamed:
            self._watch.names.find_soon(self._unnamed[0][0])

    def _pass_on(self) -> None:
        """Passes on readings whose names are known, in order."""
        while self._unnamed and not self._watch.names.missing(self._unnamed[0][0]):
            part = self._history.add(*self._unnamed.pop(0))
            with self._lock:
                self._ready.append(part)
