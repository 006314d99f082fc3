"""Rows: the processes whose figures are one set of series.

    --by    a row is a process; all processes of a name; or all of a container, or of a cgroup outside any
    --top   the rows with most RSS are exported, all others are one row, "(others)" in each label

Gauges of a row are the sums of its members'; for limits, peaks and what a cgroup uses it shows its member's
most telling figure: the closest to a limit, and the most that one has held (Figure.fold).

Counters of a row never fall: a row counts by how much each process's counter has grown while the process was
in it; a process that is new to the exporter has grown from 0.  What ended members have counted stays in; a
process that goes to another row takes nothing along.  A row is exported as long as it has members; what it
has counted is kept for when it has members again.  A process's own row (--top) goes with the process."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from prometheus_client.core import Metric

from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.census.catalogue import PROCESS_LABELS, PROCESSES, SITES, SITES_OTHER, Figure
from hakmem.target.container import container_of
from hakmem.target.target import Target
from hakmem.views.metrics_families import Families
from hakmem.views.metrics_sites import SITES_SHOWN

By = Literal["process", "command", "container"]
Row = tuple[str, ...]
Key = tuple[str, tuple[str, ...]]  # a metric's name, and the values of its labels after the row's

LABELS: dict[By, tuple[str, ...]] = {
    "process": PROCESS_LABELS,
    "command": ("command",),
    "container": ("container_id", "pod_uid", "cgroup"),
}
OTHERS = "(others)"
ROWS_KEPT_MAX = 10_000  # of those without members: the oldest is forgotten


@dataclass(frozen=True)
class Grouping:
    """The requested grouping.  `shown`: sites, and heaps, of each row."""

    by: By = "process"
    top: int | None = None
    shown: int = SITES_SHOWN

    @property
    def is_plain(self) -> bool:
        """Each process has its own series, with its counters as they are."""
        return self.by == "process" and self.top is None

    @property
    def labels(self) -> tuple[str, ...]:
        return LABELS[self.by]

    @property
    def others(self) -> Row:
        return (OTHERS,) * len(self.labels)


@dataclass(frozen=True)
class Member:
    target: Target
    pid: str
    command: str
    rss_bytes: int

    def row(self, by: By) -> Row:
        """Its own, before the largest are chosen."""
        if by == "process":
            return self.pid, self.command
        if by == "command":
            return (self.command,)
        process = self.target.process
        return container_of(process.path("cgroup")) if process else ("", "", "")


def rows_of(members: Sequence[Member], grouping: Grouping) -> dict[int, Row]:
    """Rows by PID; among rows with the same RSS the first by their labels are shown."""
    rows = [member.row(grouping.by) for member in members]
    sizes = Counter[Row]()
    for member, row in zip(members, rows, strict=True):
        sizes[row] += member.rss_bytes
    largest = sorted(sizes, key=lambda row: (-sizes[row], row))[: grouping.top]
    shown = set(largest)
    return {
        member.target.pid: row if row in shown else grouping.others
        for member, row in zip(members, rows, strict=True)
    }


# ---- counters ------------------------------------------------------------------------------------------


@dataclass
class _Seen:
    """A process's counters at the last reading."""

    target: Target
    carried: dict[Key, float]  # by the program that the process executed before
    values: dict[Key, float] = field(default_factory=dict)
    rows: set[Row] = field(default_factory=set)


class Totals:
    """The counts of rows, from one answer to the next."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], _Seen] = {}  # by PID and start time
        self._rows: dict[Row, dict[Key, float]] = {}  # the last one is the row that was exported last
        self._figures: dict[str, Figure] = {}  # also those that only members which have ended had

    def count(self, target: Target, row: Row, figure: Figure, own: Row, value: float) -> None:
        """A process's counter as it is now, in the row that the process is in now."""
        key = figure.name, own
        self._figures[figure.name] = figure
        seen = self._of(target)
        before = seen.values.get(key)
        if before is None:
            # After exec the kernel's counters go on, and the library's start again at 0.
            before = seen.carried.get(key, 0)
            before = before if before <= value else 0
        seen.values[key] = now = max(before, value)
        seen.rows.add(row)
        counted = self._rows.setdefault(row, {})
        counted[key] = counted.get(key, 0) + now - before

    def _of(self, target: Target) -> _Seen:
        identity = _identity(target)
        seen = self._seen.get(identity)
        if seen is None or seen.target is not target:
            carried = {**seen.carried, **seen.values} if seen else {}
            seen = self._seen[identity] = _Seen(target, carried, rows=seen.rows if seen else set())
        return seen

    def forget(self, targets: Iterable[Target], grouping: Grouping) -> None:
        """Processes that have ended; with rows of their own, these too.  One that cannot be read at the
        moment is not forgotten: it would be counted twice."""
        current = {_identity(target) for target in targets}
        for identity in self._seen.keys() - current:
            if not _has_ended(self._seen[identity].target):
                continue
            seen = self._seen.pop(identity)
            if grouping.by == "process":
                for row in seen.rows - {grouping.others}:
                    self._rows.pop(row, None)

    def families(self, rows: Iterable[Row], labels: Row) -> list[Metric]:
        """The counters of these rows; of all others ROWS_KEPT_MAX are kept."""
        made = Families()
        exported = set(rows)
        for row in sorted(exported):
            counted = self._rows[row] = self._rows.pop(row, {})
            for (name, values), value in counted.items():
                made.add(self._figures[name].by(labels), (*row, *values), value)
        surplus = len(self._rows) - len(exported) - ROWS_KEPT_MAX
        for row in [*self._rows][: max(0, surplus)]:
            del self._rows[row]
        return made.all()


def _identity(target: Target) -> tuple[int, int]:
    return target.pid, target.process.start_ticks if target.process else 0


def _has_ended(target: Target) -> bool:
    try:
        if target.process is not None:
            target.process.check_same()
    except HakmemError as error:
        return isinstance(error, ProcessGoneError)
    return False


# ---- sums ----------------------------------------------------------------------------------------------


class Sums(Families):
    """Figures are given for each process, and come out by rows."""

    def __init__(
        self, grouping: Grouping, members: Iterable[Member], rows: Mapping[int, Row], totals: Totals
    ) -> None:
        super().__init__()
        self._grouping = grouping
        self._totals = totals
        self._targets = {member.pid: member.target for member in members}
        self._rows = {str(pid): row for pid, row in rows.items()}
        self._figures = {figure.name: figure for figure in (*SITES, SITES_OTHER)}
        self._values: dict[str, dict[tuple[Row, Row], float]] = defaultdict(dict)

    def add(self, figure: Figure, values: Sequence[str], value: float) -> None:
        """A process's gauge is folded into its row's; a counter of a row grows by as much as the process's.
        A figure of no process stands for itself."""
        if figure.labels[: len(PROCESS_LABELS)] != PROCESS_LABELS:
            super().add(figure, values, value)
            return
        row, own = self._rows[values[0]], tuple(values[len(PROCESS_LABELS) :])
        if figure.role == "counter":
            self._totals.count(self._targets[values[0]], row, figure, own, value)
            return
        self._figures[figure.name] = figure
        known = self._values[figure.name]
        known[row, own] = figure.fold((known[row, own], value)) if (row, own) in known else value

    def all(self) -> list[Metric]:
        self._fold_sites()
        labels = self._grouping.labels
        for row, count in sorted(Counter(self._rows.values()).items()):
            super().add(PROCESSES.by(labels), row, count)
        for name, values in self._values.items():
            figure = self._figures[name].by(labels)
            for (row, own), value in values.items():
                super().add(figure, (*row, *own), value)
        return [*super().all(), *self._totals.families(self._rows.values(), labels)]

    def _fold_sites(self) -> None:
        """Each row keeps its largest sites, the row of all others none: the rest is summed."""
        sites: dict[Row, dict[Row, float]] = defaultdict(dict)
        for (row, site), value in self._values.get(SITES[0].name, {}).items():
            sites[row][site] = value
        others = self._values[SITES_OTHER.name]
        for row, sizes in sites.items():
            shown = 0 if row == self._grouping.others else self._grouping.shown
            for site in sorted(sizes, key=lambda one: (-sizes[one], one))[shown:]:
                others[row, ()] = others.get((row, ()), 0) + sizes[site]
                for figure in SITES:
                    self._values[figure.name].pop((row, site), None)
