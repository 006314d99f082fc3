"""The part of a recording's page that its heap profile fills: sites over time, and how they grew."""

from __future__ import annotations

from collections.abc import Sequence

from hakmem.base.sizes import bytes_text
from hakmem.census.catalogue import SITES_BEFORE, SITES_UNSAMPLED
from hakmem.profile.difference import Change
from hakmem.profile.estimate import Estimate
from hakmem.profile.labels import caller_text
from hakmem.profile.model import Frame
from hakmem.views.charts import Chart, Series, largest
from hakmem.views.profile_text import CALLER
from hakmem.views.recording_sites import END_PATIENCE_S, SiteHistory, SiteReading

SITES_DRAWN = 7  # with the three rests as many as there are colours
ROWS_MAX = 100
SETTLING_S = 10.0
RESTS = (
    (SITES_UNSAMPLED.label, "unsampled_bytes"),
    (SITES_BEFORE.label, "before_bytes"),
    ("total", "total_bytes"),
)


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
        if len(self.readings) < 2:
            return []
        drawn = self._largest()[:SITES_DRAWN]
        series = [Series(label(self._sites[number]), self._bytes(number)) for number in drawn]
        kept = set(drawn)
        rest = [
            reading.other_bytes + sum(row.bytes for row in reading.rows if row.site not in kept)
            for reading in self.readings
        ]
        series.append(Series("other sites", rest))
        series += [Series(name, [getattr(one, of) for one in self.readings]) for name, of in RESTS[:-1]]
        chart = Chart(
            "sites_over_time",
            "Live bytes by site",
            f"Bytes held by each of the {SITES_DRAWN} largest call sites, estimated from samples of a heap "
            "profile; with the rest the areas add up to the live blocks. A site that grows as long as the "
            "program runs deserves the first look.",
            self.times_s,
            [one for one in series if any(one.values)],
            bytes_text,
            is_stacked=True,
        )
        return [chart]

    def _largest(self) -> list[int]:
        tables = ({site: row.bytes for site, row in rows.items()} for rows in self._rows)
        return largest(tables, len(self._sites))

    def _bytes(self, number: int) -> list[float]:
        return [float(rows[number].bytes) if number in rows else 0.0 for rows in self._rows]

    @property
    def total_bytes(self) -> int:
        return self.readings[-1].total_bytes if self.readings else 0

    def lines(self) -> list[tuple[Change, float]]:
        """The sites that hold, or were once among those that held, most; with the most that each held."""
        if not self.readings:
            return []
        ends = [self._rows[0], self._rows[-1]]
        found = []
        for number in self._largest():
            first, last = (rows.get(number) for rows in ends)
            before, after = (row.estimate if row else Estimate() for row in (first, last))
            blocks = Estimate(last.blocks if last else 0)
            change = Change(self._sites[number], before, after, Estimate(), blocks)
            found.append((change, max(self._bytes(number))))
        return sorted(found, key=lambda one: (-one[0].after.value, -one[1]))[:ROWS_MAX]

    def rest(self) -> list[tuple[str, float, float | None]]:
        """Rows that make the table add up: name, bytes, growth if it is known."""
        if not self.readings:
            return []
        first, last = self.readings[0], self.readings[-1]
        shown = sum(change.after.value for change, _ in self.lines())
        others = sum(row.bytes for row in last.rows) - round(shown) + last.other_bytes
        names = (
            ("other sites", others, None),
            *((name, getattr(last, of), getattr(last, of) - getattr(first, of)) for name, of in RESTS),
        )
        return [row for row in names if row[1] > 0]


def label(frames: Sequence[Frame]) -> str:
    """For a legend: the function, and its caller."""
    return CALLER.join(caller_text(frame) for frame in frames[:2]) or "unknown"
