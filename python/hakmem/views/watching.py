"""Watching one process: moments, each with the rates since the previous one, and a short history.

`top` shows these in a terminal (top.py) and as plain tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hakmem.base.sizes import bytes_text, share_text
from hakmem.census.catalogue import CACHED_BLOCKS, FAULTS, LIVE_BLOCKS, MEMORY_PARTS, OS_CALLS, RSS
from hakmem.census.figures import TIERS, ClassFigures, Snapshot
from hakmem.census.heap_figures import few_heaps
from hakmem.census.rates import Rates, between
from hakmem.census.snapshot import WALKED
from hakmem.layout.schema import FieldMeta
from hakmem.profile.difference import Difference
from hakmem.target.target import Target
from hakmem.views.cells import Cell, Row, number, rate, rate_text, size
from hakmem.views.heap_rows import HEAP_COLUMNS, heap_row
from hakmem.views.recording import Pace

HISTORY = 60
NS_PER_MS = 1e6
HEAP_ROWS_MAX = 200


@dataclass(frozen=True)
class Moment:
    snapshot: Snapshot
    rates: Rates
    meta: Mapping[str, FieldMeta]  # of its counters
    sites: Difference | None = None  # of the heap profile, where one is shown


class Watch:
    """Takes snapshots of a process, full ones only as often as they are cheap."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.history: deque[Moment] = deque(maxlen=HISTORY)
        self._pace = Pace()
        self._last: Snapshot | None = None
        self._last_full: Snapshot | None = None

    def poll(self) -> Moment | None:
        """The next moment; None the first time, when there is nothing to compare with."""
        snapshot = self._pace.take(self.target)
        if snapshot.detail == "full":
            self._last_full = snapshot
        elif self._last_full is not None:
            snapshot = with_slab_figures(snapshot, self._last_full)
        before, self._last = self._last, snapshot
        if before is None:
            return None
        moment = Moment(snapshot, between(before, snapshot), self.target.schema.counter_meta)
        self.history.append(moment)
        return moment


def with_slab_figures(quick: Snapshot, full: Snapshot) -> Snapshot:
    """A quick snapshot with the slab figures of an older full one."""
    older = {item.number: item for item in full.classes}

    def filled(item: ClassFigures) -> ClassFigures:
        known = older.get(item.number)
        return replace(item, **{name: getattr(known, name) for name in WALKED}) if known else item

    counted = ("live_bytes", "cached_bytes", "metadata_bytes")
    memory = replace(full.memory, **{name: getattr(quick.memory, name) for name in counted})
    return replace(quick, classes=[filled(item) for item in quick.classes], memory=memory)


# ---- gauges at the top ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gauge:
    name: str
    pick: Callable[[Moment], float]
    text: Callable[[float], str]
    meaning: str


def beyond_rss(moment: Moment) -> str:
    """Why live bytes exceed RSS; "" where they do not."""
    process, live_bytes = moment.snapshot.process, moment.snapshot.memory.live_bytes
    if process is None or live_bytes <= process.rss_bytes:
        return ""
    size = bytes_text(live_bytes - process.rss_anonymous_bytes)
    swapped = f", {bytes_text(process.swap_bytes)} of it swapped out" if process.swap_bytes else ""
    return (
        f"live exceeds RSS: at least {size} of it is not resident{swapped}. Pages count in RSS once they are "
        f"touched; hakmem why {moment.snapshot.pid} splits RSS."
    )


GAUGES = (
    Gauge("RSS", lambda m: getattr(m.snapshot.process, "rss_bytes", 0), bytes_text, RSS.meaning),
    Gauge(
        "live",
        lambda m: m.snapshot.memory.live_bytes,
        bytes_text,
        f"{LIVE_BLOCKS.meaning}, resident or not",
    ),
    Gauge("caches", lambda m: m.snapshot.memory.cached_bytes, bytes_text, CACHED_BLOCKS.meaning),
    Gauge(
        "slow paths",
        lambda m: m.rates.slow_paths_per_s,
        rate_text,
        "calls of malloc and free that found their magazine empty or full",
    ),
    Gauge(
        "remote frees",
        lambda m: m.rates.remote_frees_per_s,
        rate_text,
        "blocks freed by another thread than the one that owns their slab",
    ),
    Gauge(
        "page faults",
        lambda m: m.rates.minor_faults_per_s + m.rates.major_faults_per_s,
        rate_text,
        "pages touched for the first time, or read from a file or swap",
    ),
)

# ---- views: the tables below ------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """One table: its columns ("<name" is text), its rows, its initial sort column."""

    name: str
    columns: Sequence[str]
    rows: Callable[[Moment], list[Row]]
    sorted_by: int

    def sorted_rows(self, moment: Moment, column: int | None = None, reverse: bool = True) -> list[list[str]]:
        """The texts, largest first unless `reverse` is off."""
        place = self.sorted_by if column is None else column
        rows = sorted(self.rows(moment), key=lambda row: row[place].key, reverse=reverse)
        return [[cell.text for cell in row] for row in rows]


def class_rows(moment: Moment) -> list[Row]:
    """Size classes that are or were in use."""
    rows = []
    for now in moment.rates.classes:
        item, cached = now.now, now.now.cached_blocks
        if not (item.refilled_blocks or item.live_blocks or item.magazine_blocks):
            continue
        use = share_text(item.live_blocks or 0, item.capacity_blocks) if item.capacity_blocks else "–"
        rows.append(
            [
                Cell(bytes_text(item.block_bytes), item.block_bytes),
                Cell(item.tier, item.tier),
                rate(now.refilled_per_s),
                rate(now.flushed_per_s),
                number(item.live_blocks),
                size(item.live_bytes if item.live_blocks is not None else None),
                number(cached),
                size(cached * item.block_bytes),
                number(item.slabs),
                Cell(use, (item.live_blocks or 0) / item.capacity_blocks if item.capacity_blocks else -1.0),
            ]
        )
    return rows


def thread_rows(moment: Moment) -> list[Row]:
    return [
        [
            Cell(thread.label or "–", thread.label),
            number(thread.thread_id, lambda n: str(int(n)) if n else "–"),
            Cell(thread.state, thread.state),
            size(thread.cached_bytes),
            *(size(thread.magazine_bytes.get(tier, 0)) for tier in TIERS),
            size(thread.bytes_out),
            number(thread.slow_paths),
        ]
        for thread in moment.snapshot.threads
    ]


def counter_rows(moment: Moment) -> list[Row]:
    return [
        [
            Cell(name, name),
            rate(moment.rates.counters.get(name, 0.0)),
            number(value),
            Cell(moment.meta[name].meaning if name in moment.meta else "", ""),
        ]
        for name, value in moment.snapshot.counters.items()
        if value
    ]


def os_rows(moment: Moment) -> list[Row]:
    """System calls with their time; page faults."""
    totals, rates = moment.snapshot.totals, moment.rates
    rows = []
    for call in OS_CALLS:
        spent = rates.counters.get(call.time, 0.0) / NS_PER_MS
        rows.append(
            [
                Cell(call.name, call.name),
                rate(rates.counters.get(call.count, 0.0)),
                number(totals.get(call.count)),
                Cell(f"{spent:.3g} ms/s", spent),
                number(totals.get(call.time), lambda n: f"{n / NS_PER_MS:.4g} ms"),
            ]
        )
    process = moment.snapshot.process
    if process is not None:
        for kind in FAULTS:
            name, per_s = f"page faults, {kind}", getattr(rates, f"{kind}_faults_per_s")
            total = number(getattr(process, f"{kind}_faults"))
            rows.append([Cell(name, name), rate(per_s), total, number(None), number(None)])
    return rows


def memory_rows(moment: Moment) -> list[Row]:
    """hakmem's memory by use: addresses, resident or not, so these are not parts of RSS."""
    parts = [(figure.label, figure.of(moment.snapshot.memory)) for figure in MEMORY_PARTS]
    whole = sum(value or 0 for _, value in parts)
    return [
        [Cell(name, name), size(value), Cell(share_text(value or 0, whole), value or 0)]
        for name, value in parts
    ]


def heap_rows(moment: Moment) -> list[Row]:
    """Heaps that the program has made or named: the largest, and all others as one."""
    whole_bytes, rates = moment.snapshot.memory.live_bytes, dict(moment.rates.heaps)
    shown = few_heaps(moment.snapshot.heaps, HEAP_ROWS_MAX)
    if shown and shown[-1].is_rest:
        kept = {heap.number for heap in shown}
        rates[shown[-1].number] = sum(value for number, value in rates.items() if number not in kept)
    rows = []
    for heap in shown:
        *figures, of = heap_row(heap, whole_bytes)
        rows.append([*figures, rate(rates[heap.number]) if heap.number in rates else number(None), of])
    return rows


CLASSES = View(
    "classes",
    (
        "block",
        "<tier",
        "fetched",
        "flushed",
        "live",
        "live bytes",
        "cached",
        "cached bytes",
        "slabs",
        "in use",
    ),
    class_rows,
    2,
)
THREADS = View(
    "threads",
    ("<thread", "tid", "<state", "cached", "tiny", "mid", "large", "bytes out", "slow paths"),
    thread_rows,
    3,
)
COUNTERS = View("slow paths", ("<counter", "rate", "total", "<meaning"), counter_rows, 1)
SYSTEM = View("system", ("<call", "rate", "total", "time", "total time"), os_rows, 1)
MEMORY = View("memory", ("<part", "bytes, resident or not", "share"), memory_rows, 1)
HEAPS = View("heaps", (*HEAP_COLUMNS[:-1], "allocated", HEAP_COLUMNS[-1]), heap_rows, 2)
VIEWS = (CLASSES, THREADS, COUNTERS, SYSTEM, MEMORY)  # of every process; HEAPS: of one that has any
