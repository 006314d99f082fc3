"""The part of a recording's page that its heap profile fills: sites over time, and how they grew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hakmem.base.sizes import bytes_text, count_text, share_text
from hakmem.census.catalogue import SITES_BEFORE, SITES_UNSAMPLED
from hakmem.profile.difference import Change
from hakmem.profile.estimate import Estimate
from hakmem.profile.labels import frame_text
from hakmem.profile.model import Frame
from hakmem.profile.short_names import short_name
from hakmem.views.charts import Chart, Series
from hakmem.views.profile_text import (
    CALLER,
    interval_text,
    signed_bytes,
    span_text,
)
from hakmem.views.recording_sites import END_PATIENCE_S, SiteHistory, SiteReading, SiteRow

SITES_DRAWN = 7  # with the three rests as many as there are colours
ROWS_MAX = 100
SETTLING_S = 10.0


@dataclass(frozen=True)
class SiteLine:
    """One row of the table: texts, and what they sort by."""

    site: str
    callers: str
    bytes: float
    bytes_text: str
    interval: str
    width: float
    grown: float
    grown_text: str
    grown_interval: str
    is_significant: bool
    peak: float
    peak_text: str
    blocks: float
    blocks_text: str
    share: str


class SitesOverTime:
    """A recording's profile; `began_s` is the time of its first sample."""

    def __init__(self, history: SiteHistory, began_s: float, seconds: float) -> None:
        self._sites = history.sites
        self.readings: list[SiteReading] = []
        self.times_s: list[float] = []
        for reading in history.readings:
            time_s = reading.monotonic_s - began_s
            if -SETTLING_S < time_s < 0:  # the first one is made before the first sample
                time_s = 0.0
            if (self.times_s[-1] if self.times_s else 0.0) <= time_s <= seconds + END_PATIENCE_S:
                self.readings.append(reading)
                self.times_s.append(time_s)
        self._rows = [{row.site: row for row in reading.rows} for reading in self.readings]

    def charts(self) -> list[Chart]:
        """None for less than two readings."""
        return [self._chart()] if len(self.readings) > 1 else []

    def _chart(self) -> Chart:
        drawn = self._largest()[:SITES_DRAWN]
        series = [Series(label(self._sites[number]), self._bytes(number)) for number in drawn]
        kept = set(drawn)
        rest = [
            reading.other_bytes + sum(row.bytes for row in reading.rows if row.site not in kept)
            for reading in self.readings
        ]
        series.append(Series("other sites", rest))
        series.append(Series(SITES_UNSAMPLED.label, [reading.unsampled_bytes for reading in self.readings]))
        series.append(Series(SITES_BEFORE.label, [reading.before_bytes for reading in self.readings]))
        return Chart(
            "sites_over_time",
            "Live bytes by site",
            f"Bytes held by each of the {SITES_DRAWN} largest call sites, estimated from samples of a heap "
            "profile; with the rest the areas add up to the live blocks. A site that grows as long as the "
            "program runs deserves the first look.",
            self.times_s,
            [one for one in series if any(one.values)],
            bytes_text,
            True,
            True,
        )

    def _largest(self) -> list[int]:
        most: dict[int, int] = {}
        for reading in self.readings:
            for row in reading.rows:
                most[row.site] = max(most.get(row.site, 0), row.bytes)
        return sorted((number for number in most if most[number]), key=lambda number: -most[number])

    def _bytes(self, number: int) -> list[float | None]:
        return [float(rows[number].bytes) if number in rows else 0.0 for rows in self._rows]

    def lines(self) -> list[SiteLine]:
        """The largest sites of the last reading, and those that were among the largest and are gone."""
        if not self.readings:
            return []
        first, last = self._rows[0], self._rows[-1]
        total = self.readings[-1].total_bytes
        found = [self._line(number, first.get(number), last.get(number), total) for number in self._largest()]
        return sorted(found, key=lambda one: (-one.bytes, -one.peak))[:ROWS_MAX]

    def _line(self, number: int, first: SiteRow | None, last: SiteRow | None, total: int) -> SiteLine:
        frames, nothing = self._sites[number], Estimate()
        before, after = (row.estimate if row else nothing for row in (first, last))
        change = Change(frames, before, after, nothing, nothing)
        low, high = after.interval
        peak, blocks = max(filter(None, self._bytes(number))), last.blocks if last else 0
        return SiteLine(
            site=frame_text(frames[0]) if frames else "unknown",
            callers="".join(CALLER + short_name(frame.function) for frame in frames[1:]),
            bytes=after.value,
            bytes_text=bytes_text(after.value),
            interval=interval_text(after),
            width=(high - low) / max(1.0, after.value),
            grown=change.bytes,
            grown_text=signed_bytes(change.bytes),
            grown_interval=span_text(*change.interval),
            is_significant=change.is_significant,
            peak=peak,
            peak_text=bytes_text(peak),
            blocks=blocks,
            blocks_text=count_text(blocks),
            share=share_text(after.value, total),
        )

    def rest(self) -> list[dict[str, str]]:
        """Rows that make the table add up."""
        if not self.readings:
            return []
        first, last = self.readings[0], self.readings[-1]
        shown = sum(line.bytes for line in self.lines())
        others = sum(row.bytes for row in last.rows) - round(shown) + last.other_bytes
        names = (
            ("other sites", others, None),
            (SITES_UNSAMPLED.label, last.unsampled_bytes, first.unsampled_bytes),
            (SITES_BEFORE.label, last.before_bytes, first.before_bytes),
            ("total", last.total_bytes, first.total_bytes),
        )
        return [
            {
                "site": name,
                "bytes_text": bytes_text(value),
                "grown_text": "" if then is None else signed_bytes(value - then),
                "share": share_text(value, last.total_bytes),
            }
            for name, value, then in names
            if value > 0
        ]


def label(frames: Sequence[Frame]) -> str:
    """For a legend: the function, and its caller."""
    return CALLER.join(short_name(frame.function) for frame in frames[:2]) or "unknown"
