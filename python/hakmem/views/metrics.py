"""hakmem's figures as metrics for Prometheus.

    hakmem_live_bytes{pid,command} …                    gauges of memory
    hakmem_refills_total{pid,command} …                 every counter of the library; ns become seconds
    hakmem_class_live_blocks{pid,command,class,tier} …  by size class (--classes); class: bytes of a block
    hakmem_site_live_bytes{pid,command,site,…} …        by call site, while a profile is on: metrics_sites.py
    hakmem_heap_live_bytes{pid,command,heap,tag,kind} … by heap that the program has made: metrics_heaps.py

Sums by command or container, and those of all but the largest, have other labels in place of pid and command:
metrics_rows.py.

A metric appears as soon as a library has it: names and help texts come from the library itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from hakmem.base.errors import HakmemError
from hakmem.base.files import Output
from hakmem.census.figures import ClassFigures, Snapshot
from hakmem.census.limits import LimitFigures
from hakmem.census.snapshot import Detail, take
from hakmem.layout.schema import FieldMeta
from hakmem.target.fleet import Fleet
from hakmem.target.target import Target
from hakmem.views.metrics_families import PREFIX, PROCESS_LABELS, Families
from hakmem.views.metrics_heaps import HEAPS_SHOWN, HeapMetrics
from hakmem.views.metrics_rows import Grouping, Member, Sums, Totals, rows_of
from hakmem.views.metrics_sites import SiteMetrics

CLASS_LABELS = (*PROCESS_LABELS, "class", "tier")
NS_SUFFIX, SECONDS_SUFFIX, NS_PER_S = "_ns", "_seconds", 1e9

MEMORY_HELP = {  # blocks and addresses, resident or not: not parts of RSS
    "live_bytes": "Bytes in blocks that the program holds, rounding included, resident or not.",
    "cached_bytes": "Bytes in magazines, remote-free buffers and quarantines, resident or not.",
    "quarantine_bytes": "Cached bytes in quarantines (hardened mode).",
    "free_slab_bytes": "Bytes in free blocks of slabs in use, resident or purged.",
    "ranges_dirty_bytes": "Bytes in free ranges above 64 KiB that have not been purged.",
    "ranges_clean_bytes": "Bytes in free ranges above 64 KiB that were purged, or never used.",
    "ranges_cached_bytes": "Bytes in freed Large and Big blocks kept whole for reuse, resident or not.",
    "metadata_bytes": "Bytes of hakmem's own records, touched or not.",
    "mapped_bytes": "Address space of SuperSlabs and ranges, in bytes.",
}
LIMIT_HELP = {  # refusals: enomem_total, limit_hard_refusals_total, limit_soft_hits_total
    "soft_bytes": "Soft limit on committed_bytes: HAKMEM_LIMIT_SOFT, or 3/4 of the cgroup's limit.",
    "hard_bytes": "Hard limit on committed_bytes: HAKMEM_LIMIT_HARD.",
}
CGROUP_HELP = {
    "cgroup_bytes": (
        "cgroup_limit_bytes",
        "Memory limit of the process's cgroup, the tightest of its ancestors.",
    ),
    "cgroup_used_bytes": ("cgroup_used_bytes", "Memory used by all processes of that cgroup."),
}
RATIO_HELP = {
    "limit_soft_used_ratio": "Part of the soft limit that committed_bytes is: 1 is the whole limit.",
    "limit_hard_used_ratio": "Part of the hard limit that committed_bytes is: 1 is the whole limit.",
    "cgroup_used_ratio": "Part of the cgroup's memory limit in use by all its processes: 1 is all of it.",
}
PROCESS_HELP = {
    "rss_bytes": "Resident memory of the process, hakmem's and other.",
    "rss_anonymous_bytes": "Resident anonymous memory of the process.",
    "swap_bytes": "Swapped-out memory of the process.",
    "threads": "Current threads of the process.",
}
CLASS_COUNTERS: dict[str, tuple[str, Callable[[ClassFigures], float | None]]] = {
    "refilled_blocks": ("Blocks fetched by malloc below the magazines.", lambda c: c.refilled_blocks),
    "flushed_blocks": ("Blocks flushed by free below the magazines.", lambda c: c.flushed_blocks),
    "sampled_requests": ("Requests that missed the magazine.", lambda c: c.sampled_requests),
    "sampled_bytes": ("Bytes requested by those.", lambda c: c.sampled_bytes),
}
CLASS_GAUGES: dict[str, tuple[str, Callable[[ClassFigures], float | None]]] = {
    "live_blocks": ("Blocks that the program holds.", lambda c: c.live_blocks),
    "live_bytes": (
        "Bytes in those blocks, rounding included.",
        lambda c: None if c.live_blocks is None else c.live_bytes,
    ),
    "free_blocks": ("Free blocks in slabs in use.", lambda c: c.free_blocks),
    "cached_blocks": (
        "Blocks in magazines, remote-free buffers and quarantines.",
        lambda c: c.cached_blocks,
    ),
    "slabs": ("Slabs in use.", lambda c: c.slabs),
}


class HakmemCollector(Collector):
    """Takes a snapshot of every hakmem process at each scrape."""

    def __init__(
        self,
        detail: Detail = "full",
        sites: SiteMetrics | None = None,
        grouping: Grouping = Grouping(),  # noqa: B008 - it cannot change
        heaps_shown: int = HEAPS_SHOWN,
        has_classes: bool = False,
    ) -> None:
        self._detail = detail
        self._has_classes = has_classes
        self._heaps = HeapMetrics(heaps_shown)
        self._sites = sites
        self._grouping = grouping
        self._totals = Totals()
        self._fleet = Fleet()
        self._lock = threading.Lock()  # scrapes may overlap

    def describe(self) -> Iterable[Metric]:
        """Nothing: the set of metrics depends on the processes."""
        return []

    def collect(self) -> Iterable[Metric]:
        """All metrics at this moment."""
        with self._lock:
            began_s = time.monotonic()
            targets = self._fleet.targets()
            if self._sites is not None:
                self._sites.forget(targets)
            snapshots = list(self._snapshots(targets))
            families, info, rows = self._families(targets, snapshots)
            self._heaps.choose(snapshots, rows, self._grouping.others)
            for target, snapshot in snapshots:
                labels = process_labels(target)
                add_snapshot(families, snapshot, target.schema.counter_meta, labels)
                for item in snapshot.classes if self._has_classes else ():
                    add_class(families, item, labels)
                self._heaps.add(families, target, snapshot, labels, rows[target.pid])
                if self._sites is not None:
                    self._sites.add(families.gauge, target, snapshot, labels)
            seconds = time.monotonic() - began_s
            families.gauge("exporter_processes", "Processes that run on hakmem.", (), (), len(snapshots))
            families.gauge(
                "exporter_refused_processes",
                "Processes to which the kernel denies the exporter access.",
                (),
                (),
                self._fleet.refused,
            )
            families.gauge("exporter_read_seconds", "Duration of reading all processes.", (), (), seconds)
            return [info, *families.all()]

    def _snapshots(self, targets: list[Target]) -> Iterable[tuple[Target, Snapshot]]:
        for target in targets:
            try:
                process_labels(target)  # its name is kept from here on: it may end at any time
                snapshot = take(target, detail=self._detail)
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
        if not self._grouping.is_plain:
            members = [Member(target, *labels_of[target.pid], rss_bytes(one)) for target, one in snapshots]
            rows = rows_of(members, self._grouping)
            self._totals.forget(targets, self._grouping)
            families = Sums(self._grouping, members, rows, self._totals)
        info = InfoMetricFamily(
            PREFIX.rstrip("_"), "The hakmem library of a process.", labels=list(self._grouping.labels)
        )
        for row, version in sorted({(rows[target.pid], one.version) for target, one in snapshots}):
            info.add_metric(row, {"version": version})
        return families, info, rows


def rss_bytes(snapshot: Snapshot) -> int:
    """The figure by which the largest processes are chosen."""
    return snapshot.process.rss_bytes if snapshot.process else snapshot.memory.live_bytes


def process_labels(target: Target) -> tuple[str, str]:
    """PID and the program's short name: a full command line may contain secrets."""
    return str(target.pid), target.process.name if target.process else Path(target.command[0]).name


def add_snapshot(
    families: Families, snapshot: Snapshot, meta: dict[str, FieldMeta], labels: tuple[str, str]
) -> None:
    """All figures of one process."""
    add_gauges(families, snapshot.memory, MEMORY_HELP, labels)
    if snapshot.process is not None:
        add_gauges(families, snapshot.process, PROCESS_HELP, labels)
        process = snapshot.process
        for kind, faults in (("minor", process.minor_faults), ("major", process.major_faults)):
            families.counter(
                "page_faults",
                "Page faults of the process.",
                (*PROCESS_LABELS, "kind"),
                (*labels, kind),
                faults,
            )
        families.counter("cpu_seconds", "CPU time of the process.", PROCESS_LABELS, labels, process.cpu_s)
    if snapshot.limits is not None:
        add_limits(families, snapshot.limits, labels)
    for name, value in (snapshot.counters | snapshot.totals).items():
        if name not in MEMORY_HELP:
            add_figure(families, name, value, meta.get(name), labels)
    for state in sorted({thread.state for thread in snapshot.threads}):
        heaps = sum(thread.state == state for thread in snapshot.threads)
        families.gauge(
            "heaps",
            "Heaps by the state of their thread.",
            (*PROCESS_LABELS, "state"),
            (*labels, state),
            heaps,
        )


def add_gauges(
    families: Families, figures: object, help_texts: dict[str, str], labels: tuple[str, str]
) -> None:
    """The fields of a record that have a help text; unknown values are omitted."""
    for name, help_text in help_texts.items():
        value = getattr(figures, name)
        if value is not None:
            families.gauge(name, help_text, PROCESS_LABELS, labels, value)


def add_limits(families: Families, limits: LimitFigures, labels: tuple[str, str]) -> None:
    """The existing limits."""
    named = {name: (f"limit_{name}", text) for name, text in LIMIT_HELP.items()} | CGROUP_HELP
    for field, (name, help_text) in named.items():
        value = getattr(limits, field)
        if value is not None:
            families.gauge(name, help_text, PROCESS_LABELS, labels, value)
    for name, used, limit in (
        ("limit_soft_used_ratio", limits.committed_bytes, limits.soft_bytes),
        ("limit_hard_used_ratio", limits.committed_bytes, limits.hard_bytes),
        ("cgroup_used_ratio", limits.cgroup_used_bytes, limits.cgroup_bytes),
    ):
        if used is not None and limit:
            families.gauge(name, RATIO_HELP[name], PROCESS_LABELS, labels, used / limit)


def add_figure(
    families: Families, name: str, value: float, meta: FieldMeta | None, labels: tuple[str, str]
) -> None:
    """One of the library's own figures."""
    if name.endswith(NS_SUFFIX):
        name, value = name.removesuffix(NS_SUFFIX) + SECONDS_SUFFIX, value / NS_PER_S
    is_gauge = meta is not None and meta.role == "gauge"
    add = families.gauge if is_gauge else families.counter
    add(name, sentence(meta.meaning if meta else name), PROCESS_LABELS, labels, value)


def sentence(meaning: str) -> str:
    """A help text from a figure's meaning."""
    return meaning[:1].upper() + meaning[1:] + "."


def add_class(families: Families, item: ClassFigures, labels: tuple[str, str]) -> None:
    """One size class; classes that were never used are omitted."""
    values = (*labels, str(item.block_bytes), item.tier)
    counters = {name: pick(item) for name, (_, pick) in CLASS_COUNTERS.items()}
    gauges = {name: pick(item) for name, (_, pick) in CLASS_GAUGES.items()}
    if not any(counters.values()) and not any(gauges.values()):
        return
    for name, value in counters.items():
        families.counter(f"class_{name}", CLASS_COUNTERS[name][0], CLASS_LABELS, values, value or 0)
    for name, value in gauges.items():
        if value is not None:
            families.gauge(f"class_{name}", CLASS_GAUGES[name][0], CLASS_LABELS, values, value)


# ---- output ---------------------------------------------------------------------------------------


def registry(
    detail: Detail,
    sites: SiteMetrics | None = None,
    grouping: Grouping = Grouping(),  # noqa: B008 - it cannot change
    heaps_shown: int = HEAPS_SHOWN,
    has_classes: bool = False,
) -> CollectorRegistry:
    """A registry with hakmem's metrics only, without those of this Python process."""
    made = CollectorRegistry()
    made.register(HakmemCollector(detail, sites, grouping, heaps_shown, has_classes))
    return made


def serve(host: str, port: int, metrics: CollectorRegistry) -> int:
    """Serves GET /metrics in background threads, in the format that the client requests; returns the port."""
    try:
        started = start_http_server(port, host, metrics)
    except (OSError, UnicodeError) as error:  # invalid host names: "..", "a" * 64
        reason = error.strerror if isinstance(error, OSError) else "not a valid host name"
        raise HakmemError(
            f"cannot listen on {host}:{port}: {reason}; choose another address with --listen"
        ) from None
    # Before 0.19 (Debian 12) it does not say which port the system chose for 0.
    return int(started[0].server_port) if started else port


def write_textfile(path: Path, metrics: CollectorRegistry) -> None:
    """For the textfile collector of node_exporter, which may read at any time."""
    with Output(path) as output:  # fails before the work if it cannot be written
        output.write(generate_latest(metrics).decode())
