"""Rows: whose figures are one set of series.

    --by process    {pid,command}                   each process is a row
    --by command    {command}                       all processes of a name
    --by container  {container_id,pod_uid,cgroup}   all processes of a container, or of a cgroup outside any
    --top N         the N rows with most RSS are exported, all others are one row, "(others)" in each label

Gauges of a row are the sums of its members'; limits, peaks and what a cgroup uses are exceptions (EXTREMES).

Counters of a row never fall: a row counts by how much each process's counter has grown while the process was
in it; a process that is new to the exporter has grown from 0.  What ended members have counted stays in; a
process that goes to another row takes nothing along.  A row is exported as long as it has members; what it
has counted is kept for when it has members again.  A process's own row (--top) goes with the process."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from prometheus_client.core import CounterMetricFamily, Metric

from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.target.container import container_of
from hakmem.target.target import Target
from hakmem.views.metrics_families import PREFIX, PROCESS_LABELS, Families
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
PROCESSES_HELP = "Processes whose figures are summed here."
# A row shows its member's most telling figure: the closest to a limit, and the most that one has held.
EXTREMES: dict[str, Callable[[float, float], float]] = {
    "limit_soft_bytes": min,
    "limit_hard_bytes": min,
    "cgroup_limit_bytes": min,
    "cgroup_used_bytes": max,
    "limit_soft_used_ratio": max,
    "limit_hard_used_ratio": max,
    "cgroup_used_ratio": max,
    "big_peak_bytes": max,
    "big_peak_blocks": max,
    "committed_peak_bytes": max,
    "heap_peak_bytes": max,
    "heap_limit_bytes": min,
    "heap_limit_used_ratio": max,
}
SITE_BYTES, SITES_OTHER_BYTES = "site_live_bytes", "sites_other_live_bytes"
SITE_METRICS = (SITE_BYTES, f"{SITE_BYTES}_low", f"{SITE_BYTES}_high", "site_live_blocks")


@dataclass(frozen=True)
class Grouping:
    """The requested grouping.  `sites_shown`: of each row."""

    by: By = "process"
    top: int | None = None
    sites_shown: int = SITES_SHOWN

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
    """A process that was read."""

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
        return container_of(process.path("cgroup")).labels if process else ("", "", "")


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
        self._described: dict[str, tuple[str, Row]] = {}  # help text, names of the labels after the row's

    def count(self, target: Target, row: Row, key: Key, value: float) -> None:
        """A process's counter as it is now, in the row that the process is in now."""
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

    def describe(self, name: str, help_text: str, labels: Row) -> None:
        """For a counter that only members which have ended had."""
        self._described[name] = help_text, labels

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
        made: dict[str, CounterMetricFamily] = {}
        exported = set(rows)
        for row in sorted(exported):
            counted = self._rows[row] = self._rows.pop(row, {})
            for (name, values), value in counted.items():
                if name not in made:
                    help_text, own = self._described[name]
                    made[name] = CounterMetricFamily(PREFIX + name, help_text, labels=[*labels, *own])
                made[name].add_metric([*row, *values], value)
        surplus = len(self._rows) - len(exported) - ROWS_KEPT_MAX
        for row in [*self._rows][: max(0, surplus)]:
            del self._rows[row]
        return list(made.values())


def _identity(target: Target) -> tuple[int, int]:
    return target.pid, target.process.start_ticks if target.process else 0


def _has_ended(target: Target) -> bool:
    try:
        if target.process is not None:
            target.process.check_same()
    except ProcessGoneError:
        return True
    except HakmemError:
        return False
    return False


# ---- sums ----------------------------------------------------------------------------------------------


def _sum(one: float, other: float) -> float:
    return one + other


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
        self._help: dict[str, tuple[str, Row]] = {}
        self._values: dict[str, dict[tuple[Row, Row], float]] = defaultdict(dict)

    def gauge(
        self, name: str, help_text: str, labels: Sequence[str], values: Sequence[str], value: float
    ) -> None:
        """A process's value is added to its row's; one of no process stands for itself."""
        if tuple(labels[: len(PROCESS_LABELS)]) != PROCESS_LABELS:
            super().gauge(name, help_text, labels, values, value)
            return
        row, own = self._split(values)
        self._help[name] = help_text, tuple(labels[len(PROCESS_LABELS) :])
        sums = self._values[name]
        known = sums.get((row, own))
        sums[row, own] = value if known is None else EXTREMES.get(name, _sum)(known, value)

    def counter(
        self, name: str, help_text: str, labels: Sequence[str], values: Sequence[str], value: float
    ) -> None:
        """A process's counter: the row's has grown by as much."""
        row, own = self._split(values)
        self._totals.describe(name, help_text, tuple(labels[len(PROCESS_LABELS) :]))
        self._totals.count(self._targets[values[0]], row, (name, own), value)

    def _split(self, values: Sequence[str]) -> tuple[Row, Row]:
        return self._rows[values[0]], tuple(values[len(PROCESS_LABELS) :])

    def all(self) -> list[Metric]:
        self._fold_sites()
        labels = self._grouping.labels
        for row, count in sorted(Counter(self._rows.values()).items()):
            super().gauge("processes", PROCESSES_HELP, labels, row, count)
        for name, sums in self._values.items():
            for (row, own), value in sums.items():
                help_text, own_labels = self._help[name]
                super().gauge(name, help_text, (*labels, *own_labels), (*row, *own), value)
        return [*super().all(), *self._totals.families(self._rows.values(), labels)]

    def _fold_sites(self) -> None:
        """Each row keeps its largest sites, the row of all others none: the rest is summed."""
        sites: dict[Row, dict[Row, float]] = defaultdict(dict)
        for (row, site), value in self._values.get(SITE_BYTES, {}).items():
            sites[row][site] = value
        others = self._values[SITES_OTHER_BYTES]
        for row, sizes in sites.items():
            shown = 0 if row == self._grouping.others else self._grouping.sites_shown
            for site in sorted(sizes, key=lambda one: (-sizes[one], one))[shown:]:
                others[row, ()] = others.get((row, ()), 0) + sizes[site]
                for name in SITE_METRICS:
                    self._values[name].pop((row, site), None)
