"""All figures of one process at one moment.

    take(target)                      full: walks SuperSlabs and ranges too
    take(target, detail="counters")   heaps and totals only: `top` reads these repeatedly

The target keeps running, so figures may be a few operations apart; none is ever negative.
"""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any, Literal

import numpy as np

from hakmem.base.progress import Progress, no_progress
from hakmem.base.streams import HARMLESS
from hakmem.census.census import Census, ClassCensus, count
from hakmem.census.figures import (
    FILL_STEPS,
    TIERS,
    BigFigures,
    ClassFigures,
    MemoryFigures,
    Snapshot,
    ThreadFigures,
)
from hakmem.census.limits import limit_figures
from hakmem.census.named import named_heap_figures
from hakmem.census.options import changed_options, environment_of, option_defaults, read_options
from hakmem.census.reading import Reading, Walk, read_full, read_quick
from hakmem.layout.heaps import range_magazine_bytes
from hakmem.layout.memory import Integers
from hakmem.target.target import Target, making_sense, open_process

__all__ = ["Target", "open_process", "take"]

Detail = Literal["full", "counters"]
STATES = {
    "owner_running": "running",
    "owner_dormant": "dormant",
    "owner_parked": "ended",
    "owner_lost": "lost",
}
CLASS_COUNTERS = ("refilled_blocks", "flushed_blocks", "sampled_requests", "sampled_bytes")
COUNTED = [item.name for item in fields(ClassFigures) if item.name not in CLASS_COUNTERS]  # by the census
WALKED = ("slabs", "capacity_blocks", "free_blocks", "remote_blocks", "live_blocks")


def take(target: Target, detail: Detail = "full", progress: Progress = no_progress) -> Snapshot:
    """Raises ProcessGoneError if the process ends or runs another program meanwhile."""
    with making_sense(target):
        reading = read_quick(target) if detail == "counters" else read_full(target, progress)
        return snapshot_of(count(reading))


def snapshot_of(census: Census) -> Snapshot:
    """The figures of a census, with the counters of the library and the kernel."""
    reading = census.reading
    target, schema, memory = reading.target, reading.schema, reading.target.memory
    process, totals, counters = target.process, read_totals(reading), read_counters(reading)
    heaps, kinds = named_heap_figures(census), census.range_kinds
    options = read_options(memory, schema)
    made = [item for item in census.classes if item.block_bytes]  # a fitted class has no size before
    return Snapshot(
        pid=target.pid,
        version=schema.version,
        format=schema.format,
        time_s=time.time() if target.time_s is None else target.time_s,
        monotonic_s=time.monotonic(),
        command=target.command,
        detail="counters" if reading.walk is None else "full",
        counters=counters,
        totals=totals,
        options=options,
        classes=[class_figures(reading, item) for item in sorted(made, key=lambda item: item.block_bytes)],
        big=BigFigures(None if kinds is None else int(kinds.is_big.sum()), totals.get("big_live_bytes", 0)),
        threads=thread_figures(reading),
        memory=memory_figures(census, totals),
        process=process.figures() if process else None,
        options_changed=changed_options(options, option_defaults(schema), environment_of(process)),
        limits=limit_figures(
            *(process, schema.numbers(memory, "limits"), options, counters, totals),
            sum(heap.refusals for heap in heaps),
        ),
        heaps=heaps,
    )


# ---- counters --------------------------------------------------------------------------------------


def read_counters(reading: Reading) -> dict[str, int]:
    """Summed over all heaps and the counters without a heap."""
    dtype = reading.schema.dtype("counters")
    stray = reading.target.memory.array(reading.schema.root("stray_counters"), dtype, 1)
    parts = (reading.heaps["owner"]["counters"], reading.named.all_owners["counters"], stray)
    return {name: sum(int(counters[name].sum()) for counters in parts) for name in dtype.names or ()}


def read_totals(reading: Reading) -> dict[str, int]:
    return reading.schema.numbers(reading.target.memory, "totals")


# ---- classes, Big blocks, threads ------------------------------------------------------------------


def class_figures(reading: Reading, item: ClassCensus) -> ClassFigures:
    """Figures of one class; the quick form lacks its slabs."""
    known: dict[str, Any] = {name: getattr(item, name) for name in COUNTED}
    if reading.walk is None:
        known |= dict.fromkeys(WALKED)
    known |= {name: int(reading.class_counters[name][item.number]) for name in CLASS_COUNTERS}
    return ClassFigures(**known)


def thread_figures(reading: Reading) -> list[ThreadFigures]:
    """One row per heap."""
    process = reading.target.process
    names = process.thread_names() if process else {}
    states = {reading.schema.constant(key): state for key, state in STATES.items()}
    tiers = np.array([reading.tier(number) for number in range(len(reading.class_bytes))])
    by_class = reading.magazines * reading.class_bytes
    by_tier = {tier: by_class[:, tiers == tier].sum(axis=1).tolist() for tier in TIERS}
    owners = reading.heaps["owner"]
    of_owners = (owners[name] for name in ("number", "state", "bytes_out", "slow_paths"))
    columns = (*of_owners, reading.heaps["thread_id"], quarantine_bytes(reading))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        ThreadFigures(
            number=number,
            thread_id=thread_id,
            name=names.get(thread_id, "").translate(HARMLESS) if thread_id else "",
            state=states.get(state, f"state {state}"),
            magazine_bytes={tier: by_tier[tier][row] for tier in TIERS},
            quarantine_bytes=quarantine,
            bytes_out=max(0, bytes_out),
            slow_paths=slow_paths,
            heap_name=reading.named.of_threads.get(number, ""),
        )
        for row, (number, state, bytes_out, slow_paths, thread_id, quarantine) in enumerate(rows)
    ]


def quarantine_bytes(reading: Reading) -> Integers:
    held = reading.quarantined
    sums = np.bincount(held.heap_rows, reading.class_bytes[held.classes], minlength=len(reading.heaps))
    return sums.astype(np.int64)


# ---- memory ----------------------------------------------------------------------------------------


def memory_figures(census: Census, totals: dict[str, int]) -> MemoryFigures:
    """In blocks and addresses."""
    reading = census.reading
    waiting_bytes = sum(item.quarantine_blocks * item.block_bytes for item in census.classes)
    cached_bytes = int((reading.magazines * reading.class_bytes).sum()) + waiting_bytes
    metadata_bytes = totals.get("metadata_bytes", 0)
    if reading.walk is None or census.range_kinds is None:
        live_bytes = live_bytes_about(reading, totals, cached_bytes)
        return MemoryFigures(live_bytes, cached_bytes, metadata_bytes, waiting_bytes)
    walk, kinds, classes = reading.walk, census.range_kinds, census.classes
    mapped = walk.superslabs.superslabs["is_mapped"] != 0
    range_bytes = walk.ranges.records["granules"].astype(np.int64) * walk.window.granule_bytes
    return MemoryFigures(
        live_bytes=sum(c.live_blocks * c.block_bytes for c in classes) + totals.get("big_live_bytes", 0),
        cached_bytes=cached_bytes,
        metadata_bytes=metadata_bytes,
        quarantine_bytes=waiting_bytes,
        mapped_bytes=int(mapped.sum()) * walk.window.chunk_bytes + int(range_bytes[kinds.is_mapped].sum()),
        free_slab_bytes=sum((c.free_blocks + c.remote_blocks) * c.block_bytes for c in classes),
        ranges_dirty_bytes=int(range_bytes[kinds.is_dirty].sum()),
        ranges_clean_bytes=int(range_bytes[kinds.is_clean].sum()),
        ranges_cached_bytes=int(range_bytes[kinds.is_cached].sum()),
        superslabs_by_fill=by_fill(walk, mapped),
    )


def live_bytes_about(reading: Reading, totals: dict[str, int], cached_bytes: int) -> int:
    """From the counters of heaps: blocks taken and not returned, minus those in caches."""
    owners = (reading.heaps["owner"], reading.named.all_owners)
    slab_bytes = sum(int(one["bytes_out"].sum()) for one in owners)
    apart = ("large_live_bytes", "big_live_bytes")
    taken = slab_bytes + sum(totals.get(name, 0) for name in apart)
    kept_bytes = range_magazine_bytes(reading.target.memory, reading.schema, reading.heaps)
    return max(0, taken - cached_bytes - kept_bytes)


def by_fill(walk: Walk, is_mapped: np.ndarray) -> list[int]:
    """How many SuperSlabs are filled 0 %, up to 10 %, up to 20 % …"""
    active, slots = walk.superslabs.active_slots[is_mapped], walk.window.granules_per_chunk
    steps = -(-active * (FILL_STEPS - 1) // slots)  # rounded up: one slot is more than 0 %
    counts: list[int] = np.bincount(steps, minlength=FILL_STEPS).tolist()
    return counts
