"""The catalogue of figures: each with its name, unit, meaning and advice.

`stat`, `top`, `record`, `export`, `why` and docs/STATS.md are loops over it.  The library's own
counters and totals have their lines in src/base/counters.def, and come with their texts from the process
(`of_library`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from hakmem.target.mappings import Outside

if TYPE_CHECKING:
    from hakmem.layout.schema import FieldMeta

PROCESS_LABELS = ("pid", "command")
UNITS = {"_bytes": "bytes", "_ratio": "1", "refusals": "times"}  # else the last word of the name
Fold = Callable[[Iterable[float]], float]
NS_SUFFIX, SECONDS_SUFFIX, NS_PER_S = "_ns", "_seconds", 1e9


@dataclass(frozen=True)
class Figure:
    """`key`: the field of a record, and the key in JSON."""

    key: str
    meaning: str
    label: str = ""  # in tables and legends
    advice: str = ""  # the way to reduce it
    role: str = "gauge"  # or "counter": it only grows
    fold: Fold = sum  # how figures of several processes or heaps make one
    metric: str = ""  # for Prometheus, without hakmem_ and _total
    labels: tuple[str, ...] = PROCESS_LABELS
    pick: Callable[[Any], float | None] | None = None  # out of the record, if it is not the field

    @property
    def unit(self) -> str:
        return next((unit for word, unit in UNITS.items() if word in self.key), self.key.split("_")[-1])

    def of(self, record: object) -> float | None:
        """None where it is not known."""
        value: float | None = (self.pick or attrgetter(self.key))(record)
        return value

    def by(self, labels: tuple[str, ...]) -> Figure:
        """With other labels in place of the process's."""
        return replace(self, labels=(*labels, *self.labels[len(PROCESS_LABELS) :]))

    @property
    def name(self) -> str:
        return self.metric or self.key

    @property
    def explained(self) -> str:
        return f"{sentence(self.meaning)} {self.advice}"

    @property
    def help(self) -> str:
        label = f"{self.label}, resident or not: " if self in MEMORY else ""
        return sentence(label + self.meaning)


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _group(prefix: str, more_labels: tuple[str, ...], *figures: Figure) -> tuple[Figure, ...]:
    return tuple(
        replace(one, metric=one.metric or prefix + one.key, labels=PROCESS_LABELS + more_labels)
        for one in figures
    )


# ---- hakmem's memory by use, and the lines of `why` ------------------------------------------------------

_PURGE = "Lower HAKMEM_DECAY_MS or HAKMEM_BIG_CACHE_BYTES, or call hak_purge(true)."
LIVE_BLOCKS = Figure("live_bytes", "blocks that the program holds, rounding included", "live blocks")
CACHED_BLOCKS = Figure("cached_bytes", "free blocks that threads keep", "magazines and quarantines")
FREE = Figure(
    "free_slab_bytes",
    "freed blocks between live ones, reused by the next requests of their class",
    "free blocks in used slabs",
    "Pages without a live block are purged after HAKMEM_DECAY_MS, or by hak_purge(true); the others when "
    "their live neighbours are freed: allocate long-lived data apart from short-lived data.",
)
RANGES_CACHED = Figure(
    "ranges_cached_bytes",
    "freed Large blocks, kept whole for the same call site or in quarantines",
    "cached Large blocks",
    _PURGE,
)
RANGES_FREE = Figure(
    "ranges_dirty_bytes",
    "freed memory above 64 KiB that is purged after HAKMEM_DECAY_MS",
    "free ranges waiting for purge",
    _PURGE,
)
RANGES_CLEAN = Figure(
    "ranges_clean_bytes",
    "free memory above 64 KiB that was purged, or never used: address space only",
    "free ranges purged",
)
METADATA = Figure(
    "metadata_bytes",
    "records of slabs, ranges and threads, in RSS also the library's own data; little of it is ever returned",
    "hakmem's metadata",
    "Fewer simultaneous threads need fewer records.",
)
QUARANTINE = Figure(
    "quarantine_bytes",
    "hardened mode: freed blocks whose reuse is delayed, and some of each class ready for reuse",
    "blocks in quarantine",
    "Use fewer threads, or lower HAKMEM_QUARANTINE_BYTES, which bounds the delayed ones of each.",
)
MAPPED = Figure("mapped_bytes", "of all SuperSlabs and ranges", "address space")
MEMORY_PARTS = (LIVE_BLOCKS, CACHED_BLOCKS, FREE, RANGES_CACHED, RANGES_FREE, RANGES_CLEAN, METADATA)
MEMORY = (*MEMORY_PARTS, QUARANTINE, MAPPED)  # the first of these two is in CACHED_BLOCKS too

LIVE = Figure(
    "requested_bytes",
    "memory that the program requested and has not freed",
    "live data",
    "`hakmem profile` shows which code allocates it, `hakmem what` what it is.",
)
ROUNDING = Figure(
    "rounding_bytes",
    "requests are rounded up to the next size class; sizes just above a class waste most",
    "rounding inside blocks",
    "hak_good_size() returns the size that a request really takes.",
)
CACHED = Figure(
    "cached_bytes",
    "free blocks that threads cache; an idle thread flushes them when it next allocates or frees, or "
    "ends. A sleeping thread keeps them, even if another thread purges",
    "magazines",
    "Use fewer threads, or end idle ones.",
)
POOL = Figure(
    "pool_bytes",
    "completely free slabs, kept for reuse for HAKMEM_DECAY_MS",
    "slabs EMPTY or UNUSED",
    f"{_PURGE} Or enable the helper thread (HAKMEM_HELPER_THREAD=1).",
)
OWN_LINES = (LIVE, ROUNDING, FREE, CACHED, QUARANTINE, POOL, RANGES_CACHED, RANGES_FREE, METADATA)
_OUTSIDE = {
    Outside.STACKS: (
        "each thread's stack keeps the pages of its deepest call chain",
        "Use fewer threads, or shallower calls.",
    ),
    Outside.OTHER_MALLOC: (
        "a malloc other than hakmem: the C library's before hakmem was loaded, or a bundled one",
        "`hakmem doctor -- CMD` shows whether a program bundles its own.",
    ),
    Outside.FILES: (
        "programs, libraries and mapped files, mostly shared with other processes",
        "The kernel reclaims clean pages when memory is short.",
    ),
    Outside.SHARED: (
        "shared memory (tmpfs, memfd, SysV), counted in each process that touches it",
        "The program's configuration decides its size.",
    ),
    Outside.ANONYMOUS: (
        "mapped directly by the program or its libraries, bypassing malloc: language runtimes, JITs, arenas",
        "Their own settings decide: `hakmem doctor PID` names those of the common runtimes.",
    ),
}
_OTHER_LINES = [Figure(kind.name.lower(), said[0], kind.value, said[1]) for kind, said in _OUTSIDE.items()]
LINES = {figure.label: figure for figure in (*OWN_LINES, *_OTHER_LINES)}


# ---- the process, its limits ---------------------------------------------------------------------------

RSS = Figure("rss_bytes", "all resident memory of the process, hakmem's or not", "RSS")
SWAP = Figure("swap_bytes", "swapped-out memory of the process")
PROCESS = (
    RSS,
    Figure("rss_anonymous_bytes", "resident anonymous memory of the process"),
    SWAP,
    Figure("threads", "current threads of the process"),
    Figure("cpu_s", "CPU time of the process", role="counter", metric="cpu_seconds"),
)
(PAGE_FAULTS,) = _group("", ("kind",), Figure("page_faults", "page faults of the process", role="counter"))
FAULTS = ("minor", "major")  # labels, and the fields {label}_faults
(HEAPS_BY_STATE,) = _group("", ("state",), Figure("heaps", "heaps by the state of their thread"))
_OF_SOFT = "part of the soft limit that committed_bytes is: 1 is the whole limit"
LIMITS = (
    *_group(
        "limit_",
        (),
        Figure(
            "soft_bytes",
            "soft limit on committed_bytes: HAKMEM_LIMIT_SOFT, or 3/4 of the cgroup's limit",
            fold=min,
        ),
        Figure("hard_bytes", "hard limit on committed_bytes: HAKMEM_LIMIT_HARD", fold=min),
        Figure("soft_used_ratio", _OF_SOFT, fold=max),
        Figure("hard_used_ratio", _OF_SOFT.replace("soft", "hard"), fold=max),
    ),
    Figure(
        "cgroup_bytes",
        "memory limit of the process's cgroup, the tightest of its ancestors",
        fold=min,
        metric="cgroup_limit_bytes",
    ),
    Figure("cgroup_used_bytes", "memory used by all processes of that cgroup", fold=max),
    Figure(
        "cgroup_used_ratio",
        "part of the cgroup's memory limit in use by all its processes: 1 is all of it",
        fold=max,
    ),
)


# ---- size classes, heaps of the program, call sites ------------------------------------------------------

CLASS_LABELS = ("class", "tier")
CLASSES = _group(
    "class_",
    CLASS_LABELS,
    Figure("live_blocks", "blocks that the program holds"),
    Figure(
        "live_bytes",
        "bytes in those blocks, rounding included",
        pick=lambda item: None if item.live_blocks is None else item.live_bytes,
    ),
    Figure("free_blocks", "free blocks in slabs in use"),
    Figure("cached_blocks", "blocks in magazines and quarantines"),
    Figure("slabs", "slabs in use"),
)
HEAP_LABELS = ("heap", "tag", "kind")
HEAP_COUNTERS = _group(
    "heap_",
    HEAP_LABELS,
    Figure("refusals", "requests that the limit refused", role="counter"),
    Figure("allocated_blocks", "blocks handed out", role="counter", metric="heap_allocations"),
)
HEAP_GAUGES = _group(
    "heap_",
    HEAP_LABELS,
    Figure(
        "live_bytes",
        "in live blocks, rounding included; of a thread's own heap also blocks kept for reuse",
    ),
    Figure(
        "live_blocks",
        "live blocks; none for a thread's own heap",
        pick=lambda heap: (heap.live_blocks or 0) if heap.is_made else None,
    ),
    Figure("peak_bytes", "the highest live bytes", fold=max),
    Figure("limit_bytes", "the lowest limit (`hak_set_limit`)", fold=min),
    Figure(
        "limit_used_ratio",
        "part of its limit that a heap's live bytes are: 1 is the whole; the highest",
        fold=max,
    ),
    Figure("threads", "threads whose malloc uses a heap (`hak_heap_use`)"),
)
_SITES = _group(
    "",
    (),
    Figure("profile_on", "whether a heap profile is on (1) or not (0)"),
    Figure(
        "profile_lost_samples", "samples of the heap profile without room in a table: missing from the sites"
    ),
    Figure("sites_other_live_bytes", "bytes in live blocks of all call sites without a metric of their own"),
    Figure(
        "sites_before_live_bytes",
        "bytes in live blocks that are older than the heap profile",
        "before the profile began",
    ),
    Figure(
        "sites_unsampled_live_bytes",
        "bytes in live blocks of size classes without a sample",
        "in classes without a sample yet",
    ),
)
PROFILE_ON, LOST_SAMPLES, SITES_OTHER, SITES_BEFORE, SITES_UNSAMPLED = _SITES
SITES = _group(
    "",
    ("site", "function", "file", "line"),
    Figure("site_live_bytes", "bytes in live blocks of a call site, estimated by sampling"),
    Figure("site_live_bytes_low", "lower end of the 95 % interval of site_live_bytes"),
    Figure("site_live_bytes_high", "upper end of the 95 % interval of site_live_bytes"),
    Figure("site_live_blocks", "live blocks of a call site, estimated by sampling"),
)
PROCESSES = Figure("processes", "processes whose figures are summed here")
EXPORTER = tuple(
    replace(figure, metric=f"exporter_{figure.key}", labels=())
    for figure in (
        Figure("processes", "processes that run on hakmem"),
        Figure("refused_processes", "processes to which the kernel denies the exporter access"),
        Figure("read_seconds", "duration of reading all processes"),
    )
)


# ---- the library's own -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class OsCall:
    """A system call, and the totals that count it and its time."""

    name: str
    count: str
    time: str


OS_CALLS = (
    OsCall("mmap", "os_maps", "os_map_ns"),
    OsCall("munmap", "os_unmaps", "unstable_os_unmap_ns"),
    OsCall("madvise", "os_purges", "os_purge_ns"),
)
# Counters by prefix, in the order of the report; the longest prefix decides.
GROUPS = {
    "Magazines": ("refills", "refilled_", "flush"),
    "Refills served by": ("refill_",),
    "Supply ladder": ("must_reuse_", "active_drain_", "new_pages_", "page_reuses"),
    "Route P": ("route_p_",),
    "Remote frees": ("remote_", "pending_"),
    "Shared pool": ("acquire_", "released_", "cas_"),
    "Large and Big blocks": ("large_", "big_"),
    "Locks": ("lock_",),
    "Heaps": ("heaps_",),
    "Heap profiles": ("profiled_",),
}
OTHERS = "Other"


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Counters by subject; unknown ones of a newer library come last."""
    groups: dict[str, list[str]] = {group: [] for group in (*GROUPS, OTHERS)}
    for name in names:
        fitting = [
            (len(prefix), group)
            for group, prefixes in GROUPS.items()
            for prefix in prefixes
            if name.removeprefix("unstable_").startswith(prefix)
        ]
        groups[max(fitting)[1] if fitting else OTHERS].append(name)
    return groups


def of_library(name: str, meta: FieldMeta | None) -> Figure:
    """A counter or total; as a metric its ns are seconds."""
    made = Figure(
        name,
        meta.meaning if meta else name,
        role="gauge" if meta and meta.role == "gauge" else "counter",
        fold=max if "_peak_" in name else sum,
    )
    if not name.endswith(NS_SUFFIX):
        return replace(made, pick=itemgetter(name))
    metric = name.removesuffix(NS_SUFFIX) + SECONDS_SUFFIX
    return replace(made, metric=metric, pick=lambda values: values[name] / NS_PER_S)
