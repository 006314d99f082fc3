"""Heaps that programs have made, or named, as metrics.

Heaps of one name, tag and kind are one series.  Of each row (metrics_rows.py) the series with most live bytes
are exported, all other heaps of the row are one more, (others).

A heap may end between two answers, and another take its record: counters of a series grow by how much those
of its heaps have grown since they were read last, and never fall.  What a heap that has ended counted after
it was read last is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hakmem.census.catalogue import HEAP_COUNTERS, HEAP_GAUGES
from hakmem.census.figures import Snapshot
from hakmem.census.heap_figures import NamedHeapFigures, Series
from hakmem.target.target import Target
from hakmem.views.metrics_families import Families

SERIES_KEPT_MAX = 1000  # of one process, with what they have counted
OTHERS = ("(others)", "", "")
Row = tuple[str, ...]


@dataclass
class _Counted:
    """One process's counts: of each of its heaps at the last reading, and of each series."""

    target: Target
    before: dict[int, NamedHeapFigures] = field(default_factory=dict)  # by number
    totals: dict[Series, tuple[int, int]] = field(default_factory=dict)  # the last one exported comes last

    def grow(self, series: Series, heaps: Iterable[NamedHeapFigures]) -> tuple[int, int]:
        """The series' counts, with the counts of its heaps since they were read last."""
        refusals, allocations = self.totals.pop(series, (0, 0))
        for heap in heaps:
            refused, allocated = heap.counted_since(self.before.get(heap.number))
            self.before[heap.number] = heap
            refusals += refused
            allocations += allocated
        self.totals[series] = refusals, allocations
        for one in [*self.totals][: max(0, len(self.totals) - SERIES_KEPT_MAX)]:
            del self.totals[one]
        return refusals, allocations


class HeapMetrics:
    """The counts of heaps, from one answer to the next."""

    def __init__(self, heaps_shown: int) -> None:
        self._heaps_shown = heaps_shown
        self._counted: dict[int, _Counted] = {}  # by PID
        self._shown: dict[Row, set[Series]] = {}

    def forget(self, targets: Sequence[Target]) -> None:
        """Programs that have ended, not those of which a reading failed."""
        current = {target.pid: target for target in targets}
        self._counted = {pid: one for pid, one in self._counted.items() if current.get(pid) is one.target}

    def choose(
        self, snapshots: Sequence[tuple[Target, Snapshot]], rows: Mapping[int, Row], others: Row
    ) -> None:
        """The series that each row has in this answer; the row of all others has none of its own."""
        sizes: dict[Row, Counter[Series]] = {}
        for target, snapshot in snapshots:
            of_row = sizes.setdefault(rows[target.pid], Counter())
            for heap in snapshot.heaps:
                of_row[heap.series] += heap.live_bytes
        self._shown = {
            row: set() if row == others else set(largest(of_row, self._heaps_shown))
            for row, of_row in sizes.items()
        }

    def add(
        self, families: Families, target: Target, snapshot: Snapshot, labels: tuple[str, str], row: Row
    ) -> None:
        if not snapshot.heaps or not self._heaps_shown:
            return
        shown = self._shown.get(row, set())
        by_series: dict[Series, list[NamedHeapFigures]] = {}
        for heap in snapshot.heaps:
            by_series.setdefault(heap.series if heap.series in shown else OTHERS, []).append(heap)
        counted = self._counted.setdefault(target.pid, _Counted(target))
        for series, heaps in by_series.items():
            for figure in HEAP_GAUGES:
                known = [value for value in map(figure.of, heaps) if value is not None]
                if known:
                    families.add(figure, (*labels, *series), figure.fold(known))
            if any(heap.is_made for heap in heaps):
                grown = counted.grow(series, (heap for heap in heaps if heap.is_made))
                for figure, value in zip(HEAP_COUNTERS, grown, strict=True):
                    families.add(figure, (*labels, *series), value)


def largest(sizes: Counter[Series], count: int) -> list[Series]:
    return sorted(sizes, key=lambda series: (-sizes[series], series))[:count]
