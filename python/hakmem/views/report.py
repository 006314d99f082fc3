"""The page of a recording: charts over time, each with a note on how to read it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hakmem.base.durations import duration_text
from hakmem.base.errors import HakmemError
from hakmem.base.sizes import bytes_text, count_text, counted
from hakmem.census.catalogue import LIVE_BLOCKS, MEMORY_PARTS, OS_CALLS, RANGES_CLEAN, RSS
from hakmem.census.rates import between
from hakmem.census.snapshot import STATES
from hakmem.layout.schema import FieldMeta
from hakmem.views.charts import Chart, Format, Series, largest
from hakmem.views.page import Tile, rendered
from hakmem.views.recording import Recording
from hakmem.views.report_heaps import heap_charts
from hakmem.views.report_sites import SitesOverTime

CLASSES_SHOWN = 8
THREADS_SHOWN = 8
NS_PER_MS = 1e6
REFILL_PREFIX = "unstable_refill_"
REMOTE = (
    ("blocks freed by other threads", "remote_freed_blocks"),
    ("slabs queued for their owner", "unstable_pending_enqueued"),
    ("slabs drained by their owner", "unstable_pending_drained"),
    ("lock waits", "lock_waits"),
)
Names = Sequence[tuple[str, str]]  # legend, counter


class Timeline:
    """A recording's samples and the rates between them; a rate belongs to the later sample's time."""

    def __init__(self, recording: Recording) -> None:
        if len(recording.samples) < 2:
            held = counted(len(recording.samples), "sample")
            raise HakmemError(f"the recording has {held}, but a page needs two; record for longer")
        self.recording = recording
        self.samples = recording.samples
        began_s = self.samples[0].monotonic_s
        self.times_s = [sample.monotonic_s - began_s for sample in self.samples]
        self.rates = [between(a, b) for a, b in zip(self.samples, self.samples[1:], strict=False)]

    def counters(self, names: Names, divisor: float = 1.0, *, zeros: bool = True) -> list[Series]:
        """Rates of the counters that the library has, by legend; without `zeros`, of those that grew."""
        known = self.samples[-1].counters | self.samples[-1].totals
        found = [
            rate(legend, [rates.counters.get(name, 0.0) / divisor for rates in self.rates])
            for legend, name in names
            if name in known
        ]
        return [series for series in found if zeros or any(series.values)]

    @property
    def seconds(self) -> float:
        return self.times_s[-1]


def rate(name: str, values: Sequence[float]) -> Series:
    """A rate of each interval; the first sample has none."""
    return Series(name, [None, *values])


def render(recording: Recording) -> str:
    timeline = Timeline(recording)
    sites = SitesOverTime(recording.sites, timeline.samples[0].monotonic_s, timeline.seconds)
    heaps = heap_charts(timeline.times_s, timeline.samples)
    memory, *others = all_charts(timeline)
    charts = [memory, *heaps, *sites.charts(), *others]
    return rendered(
        "report.html.j2",
        {chart.key: chart.data for chart in charts},
        recording=recording,
        command=" ".join(recording.command),
        began=time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(recording.began_s)),
        duration=duration_text(timeline.seconds),
        tiles=tiles(timeline),
        charts=charts,
        counters=counter_rows(timeline),
        sites=sites.lines(),
        sites_total=sites.total_bytes,
        sites_rest=sites.rest(),
    )


# ---- charts -----------------------------------------------------------------------------------------


def memory(timeline: Timeline) -> list[Series]:
    """RSS over the parts that hakmem knows, of full snapshots only: others do not add up."""
    samples = timeline.samples
    shown = [figure for figure in MEMORY_PARTS if figure is not RANGES_CLEAN]  # addresses without pages
    parts = [
        Series(part.label, [part.of(one.memory) if one.detail == "full" else None for one in samples])
        for part in shown
    ]
    rss = [sample.process.rss_bytes if sample.process else None for sample in samples]
    return [*(part for part in parts if any(part.values)), Series(RSS.label, rss, is_line=True)]


def classes(timeline: Timeline) -> list[Series]:
    """The busiest classes, by the bytes of a block."""
    fetched = [{one.now.block_bytes: one.refilled_per_s for one in rates.classes} for rates in timeline.rates]
    pairs = [*zip(fetched, timeline.rates, strict=True)]
    sums = {size: sum(one.get(size, 0.0) * rates.seconds for one, rates in pairs) for size in fetched[-1]}
    return [
        rate(f"{bytes_text(size)} blocks", [one.get(size, 0.0) for one in fetched])
        for size in sorted(largest([sums], CLASSES_SHOWN))
    ]


def stages(timeline: Timeline) -> list[Series]:
    names = [name for name in timeline.samples[-1].counters if name.startswith(REFILL_PREFIX)]
    said = [(name.removeprefix(REFILL_PREFIX).replace("_", " "), name) for name in names]
    return timeline.counters(said, zeros=False)


def faults(timeline: Timeline) -> list[Series]:
    return [
        rate("minor", [rates.minor_faults_per_s for rates in timeline.rates]),
        rate("major", [rates.major_faults_per_s for rates in timeline.rates]),
    ]


def threads(timeline: Timeline) -> list[Series]:
    found = [
        Series(state, [sum(thread.state == state for thread in one.threads) for one in timeline.samples])
        for state in STATES.values()
    ]
    return [series for series in found if any(series.values)]


def caches(timeline: Timeline) -> list[Series]:
    held = [{thread.number: thread.cached_bytes for thread in one.threads} for one in timeline.samples]
    threads = {thread.number: thread for one in timeline.samples for thread in one.threads}

    def label(number: int) -> str:
        thread = threads[number]
        return f"{thread.name or 'heap'} ({thread.thread_id or number})" if number else thread.name

    return [
        Series(label(number), [one.get(number, 0) for one in held]) for number in largest(held, THREADS_SHOWN)
    ]


@dataclass(frozen=True)
class Wanted:
    """A chart of the page, drawn if it has series."""

    key: str
    title: str
    explanation: str
    series: Callable[[Timeline], list[Series]]
    format: Format = lambda value: f"{count_text(value)}/s"  # a rate on an axis
    is_stacked: bool = False


CHARTS = (
    Wanted(
        "memory",
        "Memory and its parts",
        "Areas: hakmem's blocks and ranges by use, in bytes of address space, resident or not. Line: RSS, "
        "the process's memory in RAM, hakmem's or not. So the areas are not parts of the line: their pages "
        "may never have been touched, or been purged, and code, stacks and files are in the line only. If "
        "the line stays far above the live blocks, hakmem why shows what is resident.",
        memory,
        bytes_text,
        is_stacked=True,
    ),
    Wanted(
        "classes",
        "Blocks fetched, by size class",
        f"Blocks per second that malloc fetched below the magazines, for the {CLASSES_SHOWN} busiest size "
        "classes. Requests served by a magazine do not appear: they cost only a few instructions.",
        classes,
    ),
    Wanted(
        "stages",
        "Slow paths: sources of refills",
        "Magazine misses per second by the stage of the supply ladder that served them, from cheap "
        "(current) to expensive (new: a slab from the pool). A high rate of “new” in a steady program means "
        "that freed memory does not reach the threads that need it.",
        stages,
        is_stacked=True,
    ),
    Wanted(
        "remote",
        "Cross-thread frees",
        "Frees of blocks in another thread's slabs, and their consequences. Queued and drained slabs should "
        "stay close; lock waits should stay near zero.",
        lambda timeline: timeline.counters(REMOTE),
    ),
    Wanted(
        "faults",
        "Page faults",
        "Minor faults map pages, major ones read from disk. Constant faults at a steady RSS mean that pages "
        "are purged and faulted in again: a longer HAKMEM_DECAY_MS keeps them.",
        faults,
    ),
    Wanted(
        "os_calls",
        "System calls",
        "hakmem's calls that map, unmap or purge memory, per second.",
        lambda timeline: timeline.counters([(call.name, call.count) for call in OS_CALLS]),
    ),
    Wanted(
        "os_time",
        "Time in system calls",
        "Milliseconds per second that hakmem spent in these calls, without page faults.",
        lambda timeline: timeline.counters([(c.name, c.time) for c in OS_CALLS], NS_PER_MS, zeros=False),
        lambda value: f"{value:.3g} ms/s",
    ),
    Wanted(
        "threads",
        "Heaps by the state of their thread",
        "Running: the thread allocates. Dormant: it has not allocated for the decay time; other threads may "
        "reuse its slabs. Ended: the heap waits for a new thread. Only threads in the recording are counted.",
        threads,
        count_text,
        is_stacked=True,
    ),
    Wanted(
        "caches",
        "Free blocks cached by threads",
        f"Cached bytes of the {THREADS_SHOWN} threads that cached most. An idle thread flushes its cache "
        "when it next allocates or frees, or ends.",
        caches,
        bytes_text,
        is_stacked=True,
    ),
)


def all_charts(timeline: Timeline) -> list[Chart]:
    """That of memory first."""
    times_s, found = timeline.times_s, [(one, one.series(timeline)) for one in CHARTS]
    return [
        Chart(one.key, one.title, one.explanation, times_s, series, one.format, one.is_stacked)
        for one, series in found
        if series
    ]


# ---- tiles and tables ------------------------------------------------------------------------------


def tiles(timeline: Timeline) -> list[Tile]:
    last = timeline.samples[-1]
    rss = [sample.process.rss_bytes for sample in timeline.samples if sample.process]
    faults = sum(rates.minor_faults_per_s * rates.seconds for rates in timeline.rates)
    times = tuple(call.time for call in OS_CALLS)
    os_ns = sum(rates.sum_of(times) * rates.seconds for rates in timeline.rates)
    found: list[Tile] = []
    if rss:
        course = f"{bytes_text(rss[0])} at start, {bytes_text(rss[-1])} at end"
        held = f"{LIVE_BLOCKS.meaning}, resident or not"
        found = [
            ("Peak RSS", bytes_text(max(rss)), course),
            ("Live at end", bytes_text(last.memory.live_bytes), held),
        ]
    busiest = max(rates.refilled_bytes_per_s for rates in timeline.rates)
    mean = f"{count_text(faults / timeline.seconds)}/s on average"
    return [
        *found,
        ("Peak fetch rate", f"{bytes_text(busiest)}/s", "by malloc, below the magazines"),
        ("Page faults", count_text(round(faults)), mean),
        ("Time in the kernel", f"{os_ns / NS_PER_MS:.3g} ms", "mapping, unmapping and purging"),
        ("Threads", str(last.process.threads if last.process else len(last.threads)), "at end"),
    ]


def counter_rows(timeline: Timeline) -> list[tuple[str, float, float, str, str]]:
    """All counters that grew, the fastest first: name, growth, rate, unit, meaning."""
    first, last = timeline.samples[0], timeline.samples[-1]
    before, after = first.counters | first.totals, last.counters | last.totals
    meta = timeline.recording.meta
    unknown = FieldMeta("", "counter", "")
    grown = [
        (name, value - before.get(name, 0), meta.get(name, unknown))
        for name, value in after.items()
        if value > before.get(name, 0)
    ]
    return [
        (name, value, value / timeline.seconds, known.unit, known.meaning)
        for name, value, known in sorted(grown, key=lambda row: -row[1])
        if known.role == "counter"
    ]
