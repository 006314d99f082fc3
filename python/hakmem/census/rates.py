"""Rates between two snapshots of one process."""

from __future__ import annotations

from dataclasses import dataclass, field

from hakmem.census.figures import ClassFigures, Snapshot

# Requests and frees that the magazine does not serve: the slow paths.
SLOW_PATH_COUNTERS = ("refills", "flushes", "large_allocs", "big_allocs", "big_frees")
SHORTEST_S = 1e-6


@dataclass(frozen=True)
class ClassRates:
    now: ClassFigures
    refilled_per_s: float  # blocks fetched by malloc below the magazine
    flushed_per_s: float  # blocks flushed by free below the magazine


@dataclass(frozen=True)
class Rates:
    """Between two snapshots; never negative."""

    seconds: float
    counters: dict[str, float]  # counters and growing totals, per second
    classes: list[ClassRates]
    minor_faults_per_s: float
    major_faults_per_s: float
    cpu_share: float  # of one core
    heaps: dict[int, float] = field(default_factory=dict)  # blocks per second that each made one gave out

    @property
    def slow_paths_per_s(self) -> float:
        return self.sum_of(SLOW_PATH_COUNTERS)

    @property
    def remote_frees_per_s(self) -> float:
        return self.counters.get("remote_freed_blocks", 0.0)

    @property
    def refilled_bytes_per_s(self) -> float:
        return sum(item.refilled_per_s * item.now.block_bytes for item in self.classes)

    def sum_of(self, names: tuple[str, ...]) -> float:
        """The sum of some counters, without those that the library lacks."""
        return sum(self.counters.get(name, 0.0) for name in names)


def between(before: Snapshot, after: Snapshot) -> Rates:
    seconds = max(after.monotonic_s - before.monotonic_s, SHORTEST_S)
    old_classes = {item.number: item for item in before.classes}
    old, new = before.counters | before.totals, after.counters | after.totals
    was, now = before.process, after.process
    minor = major = cpu_s = 0.0
    if was is not None and now is not None:
        minor, major = grown(was.minor_faults, now.minor_faults), grown(was.major_faults, now.major_faults)
        cpu_s = grown(was.cpu_s, now.cpu_s)
    return Rates(
        seconds=seconds,
        counters={name: grown(old.get(name, 0), value) / seconds for name, value in new.items()},
        classes=[class_rates(old_classes.get(item.number), item, seconds) for item in after.classes],
        minor_faults_per_s=minor / seconds,
        major_faults_per_s=major / seconds,
        cpu_share=cpu_s / seconds,
        heaps=heap_rates(before, after, seconds),
    )


def class_rates(before: ClassFigures | None, after: ClassFigures, seconds: float) -> ClassRates:
    """The class may be missing in `before`."""
    refilled, flushed = (before.refilled_blocks, before.flushed_blocks) if before else (0, 0)
    return ClassRates(
        after,
        grown(refilled, after.refilled_blocks) / seconds,
        grown(flushed, after.flushed_blocks) / seconds,
    )


def heap_rates(before: Snapshot, after: Snapshot, seconds: float) -> dict[int, float]:
    """Blocks per second that each heap that the program has made gave out, by its number."""
    old = {heap.number: heap for heap in before.heaps}
    return {
        heap.number: heap.counted_since(old.get(heap.number))[1] / seconds
        for heap in after.heaps
        if heap.is_made
    }


def grown(before: float, after: float) -> float:
    """How much a counter grew; a gauge that fell, or a counter read while it changed, gives 0."""
    return max(after - before, 0)
