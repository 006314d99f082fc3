"""hakmem's figures as metrics for Prometheus: those of census/catalogue.py, and every counter of the library.

Sums by command or container, and those of all but the largest, have other labels in place of pid and command:
metrics_rows.py.

A metric appears as soon as a library has it: names and help texts come from the library itself."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from hakmem.base.errors import HakmemError
from hakmem.base.files import Output
from hakmem.census import catalogue
from hakmem.census.figures import ClassFigures, Snapshot
from hakmem.census.snapshot import CLASS_COUNTERS, Detail, take
from hakmem.layout.schema import FieldMeta
from hakmem.target.fleet import Fleet
from hakmem.target.target import Target
from hakmem.views.metrics_families import PREFIX, Families
from hakmem.views.metrics_heaps import HeapMetrics
from hakmem.views.metrics_rows import Grouping, Member, Sums, Totals, rows_of
from hakmem.views.metrics_sites import SiteMetrics


@dataclass(eq=False)
class HakmemCollector(Collector):
    """Takes a snapshot of every hakmem process at each scrape."""

    detail: Detail = "full"
    sites: SiteMetrics | None = None
    grouping: Grouping = field(default_factory=Grouping)
    has_classes: bool = False

    def __post_init__(self) -> None:
        self._heaps = HeapMetrics(self.grouping.shown)
        self._totals = Totals()
        self._fleet = Fleet()
        self._lock = threading.Lock()  # scrapes may overlap

    def describe(self) -> Iterable[Metric]:
        """Nothing: the set of metrics depends on the processes."""
        return []

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            began_s = time.monotonic()
            targets = self._fleet.targets()
            self._heaps.forget(targets)
            if self.sites is not None:
                self.sites.forget(targets)
            snapshots = list(self._snapshots(targets))
            families, info, rows = self._families(targets, snapshots)
            self._heaps.choose(snapshots, rows, self.grouping.others)
            for target, snapshot in snapshots:
                labels = process_labels(target)
                add_snapshot(families, snapshot, target.schema.counter_meta, labels)
                for item in snapshot.classes if self.has_classes else ():
                    add_class(families, item, target.schema.meta("class_counters"), labels)
                self._heaps.add(families, target, snapshot, labels, rows[target.pid])
                if self.sites is not None:
                    self.sites.add(families.add, target, snapshot, labels)
            own = (len(snapshots), self._fleet.refused, time.monotonic() - began_s)
            for figure, value in zip(catalogue.EXPORTER, own, strict=True):
                families.add(figure, (), value)
            return [info, *families.all()]

    def _snapshots(self, targets: list[Target]) -> Iterable[tuple[Target, Snapshot]]:
        for target in targets:
            try:
                process_labels(target)  # its name is kept from here on: it may end at any time
                snapshot = take(target, detail=self.detail)
            except HakmemError:
                continue  # it ended, or executed another program, meanwhile
            yield target, snapshot

    def _families(
        self, targets: list[Target], snapshots: list[tuple[Target, Snapshot]]
    ) -> tuple[Families, InfoMetricFamily, dict[int, tuple[str, ...]]]:
        """Empty families, and the row of each process."""
        labels_of = {target.pid: process_labels(target) for target, _ in snapshots}
        rows: dict[int, tuple[str, ...]] = dict(labels_of)
        families = Families()
        if not self.grouping.is_plain:
            members = [
                Member(target, *labels_of[target.pid], one.process.rss_bytes if one.process else 0)
                for target, one in snapshots
            ]
            rows = rows_of(members, self.grouping)
            self._totals.forget(targets, self.grouping)
            families = Sums(self.grouping, members, rows, self._totals)
        info = InfoMetricFamily(
            PREFIX.rstrip("_"), "The hakmem library of a process.", labels=list(self.grouping.labels)
        )
        for row, version in sorted({(rows[target.pid], one.version) for target, one in snapshots}):
            info.add_metric(row, {"version": version})
        return families, info, rows


def process_labels(target: Target) -> tuple[str, str]:
    """PID and the program's short name: a full command line may contain secrets."""
    return str(target.pid), target.process.name if target.process else Path(target.command[0]).name


def add_snapshot(
    families: Families, snapshot: Snapshot, meta: dict[str, FieldMeta], labels: tuple[str, str]
) -> None:
    families.add_all(catalogue.MEMORY, snapshot.memory, labels)
    process, limits = snapshot.process, snapshot.limits
    if process is not None:
        families.add_all(catalogue.PROCESS, process, labels)
        for kind in catalogue.FAULTS:
            families.add(catalogue.PAGE_FAULTS, (*labels, kind), getattr(process, f"{kind}_faults"))
    if limits is not None:
        families.add_all(catalogue.LIMITS, limits, labels)
    values = snapshot.counters | snapshot.totals
    told = {figure.name for figure in catalogue.MEMORY}
    own = (catalogue.of_library(name, meta.get(name)) for name in values if name not in told)
    families.add_all(own, values, labels)
    for state, heaps in sorted(Counter(thread.state for thread in snapshot.threads).items()):
        families.add(catalogue.HEAPS_BY_STATE, (*labels, state), heaps)


def add_class(
    families: Families, item: ClassFigures, meta: dict[str, FieldMeta], labels: tuple[str, str]
) -> None:
    """One size class; classes that were never used are omitted."""
    figures = (*(class_counter(name, meta.get(name)) for name in CLASS_COUNTERS), *catalogue.CLASSES)
    if any(figure.of(item) for figure in figures):
        families.add_all(figures, item, (*labels, str(item.block_bytes), item.tier))


def class_counter(name: str, meta: FieldMeta | None) -> catalogue.Figure:
    made = catalogue.of_library(name, meta)
    return replace(made, metric=f"class_{name}", labels=catalogue.CLASSES[0].labels, pick=attrgetter(name))


# ---- output ---------------------------------------------------------------------------------------


def registry(collector: HakmemCollector) -> CollectorRegistry:
    """A registry with hakmem's metrics only, without those of this Python process."""
    made = CollectorRegistry()
    made.register(collector)
    return made


def serve(host: str, port: int, metrics: CollectorRegistry) -> int:
    """Serves GET /metrics in background threads, in the format that the client requests; returns the port."""
    try:
        started = start_http_server(port, host, metrics)
    except (OSError, UnicodeError) as error:  # invalid host names: "..", "a" * 64
        reason = error.strerror if isinstance(error, OSError) else "not a valid host name"
        raise HakmemError(f"cannot listen on {host}:{port}: {reason}; choose another address") from None
    # Before 0.19 (Debian 12) it does not say which port the system chose for 0.
    return int(started[0].server_port) if started else port


def write_textfile(path: Path, metrics: CollectorRegistry) -> None:
    """For the textfile collector of node_exporter, which may read at any time."""
    with Output(path) as output:  # fails before the work if it cannot be written
        output.write(generate_latest(metrics).decode())
