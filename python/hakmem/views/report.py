"""The page of a recording: charts over time, each with a note on how to read it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hakmem.base.durations import duration_text
from hakmem.base.errors import HakmemError
from hakmem.base.sizes import bytes_text, count_text, counted
from hakmem.census.catalogue import LIVE_BLOCKS, MEMORY_PARTS, OS_CALLS, RANGES_CLEAN, Figure
from hakmem.census.figures import Snapshot, ThreadFigures
from hakmem.census.rates import Rates, between
from hakmem.views.charts import Chart, Series
from hakmem.views.page import Tile, rendered
from hakmem.views.recording import Recording
from hakmem.views.report_heaps import heap_charts
from hakmem.views.report_sites import SitesOverTime

CLASSES_SHOWN = 8
THREADS_SHOWN = 8
NS_PER_MS = 1e6
REFILL_PREFIX = "unstable_refill_"


@dataclass(frozen=True)
class CounterRow:
    """One row of the table of counters."""

    name: str
    grown: str
    rate: str
    unit: str
    meaning: str


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

    def gauge(self, name: str, pick: Callable[[Snapshot], float | None], is_line: bool = False) -> Series:
        """A figure of each sample."""
        return Series(name, [pick(sample) for sample in self.samples], is_line)

    def rate(self, name: str, pick: Callable[[Rates], float]) -> Series:
        """A rate of each interval; the first sample has none."""
        return Series(name, [None, *(pick(rates) for rates in self.rates)])

    @property
    def seconds(self) -> float:
        return self.times_s[-1]


def render(recording: Recording) -> str:
    """The page as text."""
    timeline = Timeline(recording)
    sites = SitesOverTime(recording.sites, timeline.samples[0].monotonic_s, timeline.seconds)
    heaps = heap_charts(timeline.times_s, timeline.samples)
    charts = [memory_chart(timeline), *heaps, *sites.charts(), *all_charts(timeline)]
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
        sites_rest=sites.rest(),
    )


def all_charts(timeline: Timeline) -> list[Chart]:
    """The page's charts of rates and caches, without empty ones."""
    makers = (
        class_chart,
        stage_chart,
        remote_chart,
        fault_chart,
        os_call_chart,
        os_time_chart,
        thread_chart,
        cache_chart,
    )
    return [chart for chart in (make(timeline) for make in makers) if chart.series]


# ---- charts -----------------------------------------------------------------------------------------


def memory_chart(timeline: Timeline) -> Chart:
    """RSS over the parts that hakmem knows."""
    shown = [figure for figure in MEMORY_PARTS if figure is not RANGES_CLEAN]  # addresses without pages
    parts = [timeline.gauge(figure.label, memory_part(figure)) for figure in shown]
    rss = timeline.gauge("RSS", lambda sample: sample.process.rss_bytes if sample.process else None, True)
    return Chart(
        "memory",
        "Memory and its parts",
        "Areas: hakmem's blocks and ranges by use, in bytes of address space, resident or not. Line: RSS, "
        "the process's memory in RAM, hakmem's or not. So the areas are not parts of the line: their pages "
        "may never have been touched, or been purged, and code, stacks and files are in the line only. If "
        "the line stays far above the live blocks, hakmem why shows what is resident.",
        timeline.times_s,
        [*(part for part in parts if any(part.values)), rss],
        bytes_text,
        True,
        True,
    )


def memory_part(figure: Figure) -> Callable[[Snapshot], float | None]:
    """Reads one of the memory figures, from full snapshots only: parts of different moments do not add up."""
    return lambda sample: figure.of(sample.memory) if sample.detail == "full" else None


def class_chart(timeline: Timeline) -> Chart:
    """The busiest classes."""
    totals: dict[int, float] = {}
    blocks: dict[int, int] = {}
    for rates in timeline.rates:
        for item in rates.classes:
            totals[item.number] = totals.get(item.number, 0.0) + item.refilled_per_s * rates.seconds
            blocks[item.number] = item.block_bytes
    busiest = [n for n in sorted(totals, key=lambda n: -totals[n])[:CLASSES_SHOWN] if totals[n] > 0]
    series = [
        timeline.rate(f"{bytes_text(blocks[number])} blocks", class_rate(number))
        for number in sorted(busiest)
    ]
    return Chart(
        "classes",
        "Blocks fetched, by size class",
        f"Blocks per second that malloc fetched below the magazines, for the {CLASSES_SHOWN} busiest size "
        "classes. Requests served by a magazine do not appear: they cost only a few instructions.",
        timeline.times_s,
        series,
        per_second,
    )


def class_rate(number: int) -> Callable[[Rates], float]:
    """Reads one class's rate."""
    return lambda rates: next((item.refilled_per_s for item in rates.classes if item.number == number), 0.0)


def stage_chart(timeline: Timeline) -> Chart:
    """The stage that served the refills."""
    names = [name for name in timeline.samples[-1].counters if name.startswith(REFILL_PREFIX)]
    series = [
        timeline.rate(name.removeprefix(REFILL_PREFIX).replace("_", " "), counter_rate(name))
        for name in names
        if any(rates.counters.get(name) for rates in timeline.rates)
    ]
    return Chart(
        "stages",
        "Slow paths: sources of refills",
        "Magazine misses per second by the stage of the supply ladder that served them, from cheap "
        "(current) to expensive (new: a slab from the pool). A high rate of “new” in a steady program means "
        "that freed memory does not reach the threads that need it.",
        timeline.times_s,
        series,
        per_second,
        True,
    )


def remote_chart(timeline: Timeline) -> Chart:
    """Cross-thread frees."""
    pairs = (
        ("blocks freed by other threads", "remote_freed_blocks"),
        ("slabs queued for their owner", "unstable_pending_enqueued"),
        ("slabs drained by their owner", "unstable_pending_drained"),
        ("lock waits", "lock_waits"),
    )
    return Chart(
        "remote",
        "Cross-thread frees",
        "Frees of blocks in another thread's slabs, and their consequences. Queued and drained slabs should "
        "stay close; lock waits should stay near zero.",
        timeline.times_s,
        counter_series(timeline, pairs),
        per_second,
    )


def fault_chart(timeline: Timeline) -> Chart:
    """Page faults."""
    return Chart(
        "faults",
        "Page faults",
        "Minor faults map pages, major ones read from disk. Constant faults at a steady RSS mean that pages "
        "are purged and faulted in again: a longer HAKMEM_DECAY_MS keeps them.",
        timeline.times_s,
        [
            timeline.rate("minor", lambda r: r.minor_faults_per_s),
            timeline.rate("major", lambda r: r.major_faults_per_s),
        ],
        per_second,
    )


def os_call_chart(timeline: Timeline) -> Chart:
    """System calls."""
    pairs = [(call.name, call.count) for call in OS_CALLS]
    return Chart(
        "os_calls",
        "System calls",
        "hakmem's calls that map, unmap or purge memory, per second.",
        timeline.times_s,
        counter_series(timeline, pairs),
        per_second,
    )


def os_time_chart(timeline: Timeline) -> Chart:
    """Time in system calls."""
    series = [
        timeline.rate(call.name, counter_rate(call.time, NS_PER_MS))
        for call in OS_CALLS
        if any(rates.counters.get(call.time) for rates in timeline.rates)
    ]
    return Chart(
        "os_time",
        "Time in system calls",
        "Milliseconds per second that hakmem spent in these calls, without page faults.",
        timeline.times_s,
        series,
        lambda value: f"{value:.3g} ms/s",
    )


def thread_chart(timeline: Timeline) -> Chart:
    """Threads by state."""
    states = ("running", "dormant", "ended", "lost")
    series = [
        timeline.gauge(state, heap_count(state))
        for state in states
        if any(thread.state == state for sample in timeline.samples for thread in sample.threads)
    ]
    return Chart(
        "threads",
        "Heaps by the state of their thread",
        "Running: the thread allocates. Dormant: it has not allocated for the decay time; other threads may "
        "reuse its slabs. Ended: the heap waits for a new thread. Only threads in the recording are counted.",
        timeline.times_s,
        series,
        count_text,
        True,
    )


def heap_count(state: str) -> Callable[[Snapshot], float]:
    """Counts heaps in a state."""
    return lambda sample: sum(thread.state == state for thread in sample.threads)


def cache_chart(timeline: Timeline) -> Chart:
    """Free blocks in thread caches."""
    most: dict[int, int] = {}
    names: dict[int, str] = {}
    for sample in timeline.samples:
        for thread in sample.threads:
            most[thread.number] = max(most.get(thread.number, 0), thread.cached_bytes)
            names[thread.number] = thread_label(thread)
    shown = [n for n in sorted(most, key=lambda n: -most[n])[:THREADS_SHOWN] if most[n]]
    return Chart(
        "caches",
        "Free blocks cached by threads",
        f"Cached bytes of the {THREADS_SHOWN} threads that cached most. An idle thread flushes its cache "
        "when it next allocates or frees, or ends.",
        timeline.times_s,
        [timeline.gauge(names[number], cached_by(number)) for number in shown],
        bytes_text,
        True,
        True,
    )


def thread_label(thread: ThreadFigures) -> str:
    """A thread's name and number in a legend."""
    return f"{thread.name or 'heap'} ({thread.thread_id or thread.number})" if thread.number else thread.name


def cached_by(number: int) -> Callable[[Snapshot], float]:
    """Reads the cached bytes of one heap."""
    return lambda sample: next((t.cached_bytes for t in sample.threads if t.number == number), 0)


def counter_series(timeline: Timeline, pairs: Sequence[tuple[str, str]]) -> list[Series]:
    """Series of the counters that the library has."""
    known = timeline.samples[-1].counters | timeline.samples[-1].totals
    return [timeline.rate(name, counter_rate(key)) for name, key in pairs if key in known]


def counter_rate(name: str, divisor: float = 1.0) -> Callable[[Rates], float]:
    """Reads one counter's rate."""
    return lambda rates: rates.counters.get(name, 0.0) / divisor


def per_second(value: float) -> str:
    """A rate on an axis."""
    return f"{count_text(value)}/s"


# ---- tiles and tables ------------------------------------------------------------------------------


def tiles(timeline: Timeline) -> list[Tile]:
    """The recording in a few figures."""
    last = timeline.samples[-1]
    rss = [sample.process.rss_bytes for sample in timeline.samples if sample.process]
    faults = sum(rates.minor_faults_per_s * rates.seconds for rates in timeline.rates)
    times = tuple(call.time for call in OS_CALLS)
    os_ns = sum(rates.sum_of(times) * rates.seconds for rates in timeline.rates)
    result = []
    if rss:
        course = f"{bytes_text(rss[0])} at start, {bytes_text(rss[-1])} at end"
        live_bytes = last.memory.live_bytes
        result += [
            Tile("Peak RSS", bytes_text(max(rss)), course),
            Tile("Live at end", bytes_text(live_bytes), f"{LIVE_BLOCKS.meaning}, resident or not"),
        ]
    busiest = max(rates.refilled_bytes_per_s for rates in timeline.rates)
    return [
        *result,
        Tile("Peak fetch rate", f"{bytes_text(busiest)}/s", "by malloc, below the magazines"),
        Tile(
            "Page faults", count_text(round(faults)), f"{count_text(faults / timeline.seconds)}/s on average"
        ),
        Tile("Time in the kernel", f"{os_ns / NS_PER_MS:.3g} ms", "mapping, unmapping and purging"),
        Tile("Threads", str(last.process.threads if last.process else len(last.threads)), "at end"),
    ]


def counter_rows(timeline: Timeline) -> list[CounterRow]:
    """All counters that grew, the fastest first."""
    first, last = timeline.samples[0], timeline.samples[-1]
    before, after = first.counters | first.totals, last.counters | last.totals
    meta = timeline.recording.meta
    grown = {
        name: value - before.get(name, 0)
        for name, value in after.items()
        if value > before.get(name, 0) and (name not in meta or meta[name].role == "counter")
    }
    return [
        CounterRow(
            name=name,
            grown=count_text(value),
            rate=per_second(value / timeline.seconds),
            unit=meta[name].unit if name in meta else "",
            meaning=meta[name].meaning if name in meta else "",
        )
        for name, value in sorted(grown.items(), key=lambda item: -item[1])
    ]
