"""From structures to figures: what a snapshot says, computed from what was read.

law  capacity = free + remote + live + magazines + outboxes + quarantines, per class of slabs
     large:  ranges in use = live + magazines
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hakmem.base.progress import Progress, no_progress
from hakmem.census.figures import (
    FILL_STEPS,
    TIERS,
    BigFigures,
    ClassFigures,
    MemoryFigures,
    Snapshot,
    ThreadFigures,
)
from hakmem.census.limits import limit_figures, read_limits
from hakmem.census.options import changed_options, environment_of, option_defaults, read_options
from hakmem.layout.memory import Memory
from hakmem.layout.schema import Schema
from hakmem.layout.structures import (
    Ranges,
    Records,
    Superslabs,
    Window,
    magazine_counts,
    read_class_counters,
    read_heaps,
    read_outbox_words,
    read_quarantines,
    read_ranges,
    read_superslabs,
)
from hakmem.target.process import Process
from hakmem.target.target import Target
from hakmem.target.threads import thread_ids

Counts = NDArray[np.int64]
STATES = {
    "owner_running": "running",
    "owner_dormant": "dormant",
    "owner_parked": "ended",
    "owner_lost": "lost",
}


@dataclass
class Quarantined:
    """Blocks in quarantine (hardened mode): one row each."""

    classes: Counts
    heap_rows: Counts

    def bytes_by_heap(self, block_bytes: Counts, heap_count: int) -> Counts:
        """What each heap holds."""
        sums = np.bincount(self.heap_rows, block_bytes[self.classes], minlength=heap_count)
        return sums.astype(np.int64)


@dataclass
class Read:
    """What was read; the last four only in the full form."""

    memory: Memory
    schema: Schema
    heaps: Records
    quarantined: Quarantined
    window: Window | None = None
    outbox_words: Records | None = None
    superslabs: Superslabs | None = None
    ranges: Ranges | None = None

    @property
    def block_bytes(self) -> Counts:
        return self.memory.array(
            self.schema.root("class_bytes"), np.dtype("u4"), self.schema.constant("class_count")
        ).astype(np.int64)


def take_counters(target: Target) -> Snapshot:
    """The quick form: heaps and totals."""
    memory, schema = target.memory, target.schema
    heaps = read_heaps(memory, schema, target.own_pid)
    return _snapshot(target, Read(memory, schema, heaps, _quarantined(memory, schema, heaps)))


def take_full(target: Target, progress: Progress = no_progress) -> Snapshot:
    """Caches and slabs are read directly after one another: a block that moves from one to the other in
    between is counted twice, or not at all.  So what is off is at most what caches can hold."""
    memory, schema = target.memory, target.schema
    window = Window(memory, schema)
    heaps = read_heaps(memory, schema, target.own_pid)
    outbox_words = read_outbox_words(memory, schema, heaps)
    quarantined = _quarantined(memory, schema, heaps, window)
    superslabs = read_superslabs(memory, schema, window, lambda done: progress(done * 0.8))
    ranges = read_ranges(memory, schema, window, lambda done: progress(0.8 + done * 0.2))
    return _snapshot(
        target, Read(memory, schema, heaps, quarantined, window, outbox_words, superslabs, ranges)
    )


def _quarantined(memory: Memory, schema: Schema, heaps: Records, window: Window | None = None) -> Quarantined:
    """The owner map tells their classes."""
    blocks, heap_rows = read_quarantines(memory, schema, heaps)
    if not len(blocks):
        return Quarantined(np.empty(0, np.int64), np.empty(0, np.int64))
    window = window or Window(memory, schema)
    limits = schema.constant("slab_class_count"), schema.constant("map_class_mask")
    classes = window.slab_classes_of(blocks, *limits)
    return Quarantined(classes[classes >= 0], heap_rows[classes >= 0])


def _snapshot(target: Target, read: Read) -> Snapshot:
    process = target.process
    totals = _totals(read)
    classes = _classes(read)
    counters, options = _counters(read), read_options(read.memory, read.schema)
    snapshot = Snapshot(
        pid=target.pid,
        version=read.schema.version,
        format=read.schema.format,
        time_s=time.time() if target.time_s is None else target.time_s,
        monotonic_s=time.monotonic(),
        command=target.command,
        detail="counters" if read.superslabs is None else "full",
        counters=counters,
        totals=totals,
        options=options,
        classes=classes,
        big=_big(read, totals),
        threads=_threads(read, process, target.pid),
        memory=_memory(read, totals, classes),
        process=process.figures() if process else None,
        options_changed=changed_options(options, option_defaults(read.schema), environment_of(process)),
        limits=limit_figures(process, read_limits(read.memory, read.schema), options, counters, totals),
    )
    target.check_same()
    return snapshot


# ---- counters --------------------------------------------------------------------------------------


def _counters(read: Read) -> dict[str, int]:
    """Summed over all heaps, and over what was counted without one."""
    dtype = read.schema.dtype("counters")
    stray = read.memory.array(read.schema.root("stray_counters"), dtype, 1)
    by_heap = read.heaps["owner"]["counters"]
    return {name: int(by_heap[name].sum()) + int(stray[name][0]) for name in dtype.names or ()}


def _totals(read: Read) -> dict[str, int]:
    record = read.memory.array(read.schema.root("totals"), read.schema.dtype("totals"), 1)
    return {name: int(record[name][0]) for name in record.dtype.names or ()}


# ---- classes ---------------------------------------------------------------------------------------


def _classes(read: Read) -> list[ClassFigures]:
    schema = read.schema
    count = schema.constant("class_count")
    nothing = np.zeros(count, np.int64)
    from_heaps = read_class_counters(read.memory, schema, read.heaps)
    columns: dict[str, Any] = {
        "block_bytes": read.block_bytes,
        "magazine_blocks": magazine_counts(read.heaps).sum(axis=0),
        "quarantine_blocks": _by_class(read, read.quarantined.classes),
        **{
            name: from_heaps.get(name, nothing)
            for name in ("refilled_blocks", "flushed_blocks", "sampled_requests", "sampled_bytes")
        },
    }
    if read.superslabs is not None and read.ranges is not None:
        in_caches = columns["magazine_blocks"] + columns["quarantine_blocks"]
        columns |= _places(read, read.superslabs, read.ranges, in_caches)
    else:
        columns["outbox_blocks"] = [None] * count
    return [
        ClassFigures(
            number=number,
            tier=_tier(schema, number),
            **{
                name: None if column[number] is None else int(column[number])
                for name, column in columns.items()
            },
        )
        for number in range(count)
    ]


def _places(read: Read, superslabs: Superslabs, ranges: Ranges, in_caches: Counts) -> dict[str, Counts]:
    """Where the blocks of each class are; `in_caches`: those in magazines and quarantines."""
    free, remote = _free_blocks(read, superslabs)
    outbox = _outbox_blocks(read)
    slabs = _by_class(read, superslabs.slabs["class"])
    large = _large_blocks(read, ranges)
    capacity = _by_class(read, superslabs.slabs["class"], superslabs.slabs["capacity"]) + large
    live = np.maximum(capacity - free - remote - in_caches - outbox, 0)
    return {
        "slabs": slabs,
        "capacity_blocks": capacity,
        "free_blocks": free,
        "remote_blocks": remote,
        "outbox_blocks": outbox,
        "live_blocks": live,
    }


def _free_blocks(read: Read, superslabs: Superslabs) -> tuple[Counts, Counts]:
    """Free blocks of each class that the owner knows, and that others freed."""
    free, remote = (np.zeros(read.schema.constant("class_count"), np.int64) for _ in range(2))
    numbers = superslabs.slabs["class"]
    for number in np.unique(numbers):
        rows = np.flatnonzero(numbers == number)
        local_bits, remote_bits = superslabs.bitmaps(read.memory, read.schema, rows)
        free[number] = int(np.bitwise_count(local_bits & ~remote_bits).sum())
        remote[number] = int(np.bitwise_count(remote_bits).sum())
    return free, remote


def _outbox_blocks(read: Read) -> Counts:
    words = read.outbox_words
    assert words is not None
    slabs = read.memory.records(words["slab"], read.schema.dtype("slab"))
    return _by_class(read, slabs["class"], np.bitwise_count(words["bits"]))


def _large_blocks(read: Read, ranges: Ranges) -> Counts:
    """Ranges of each class of Large blocks that belong to a thread: live, or in its magazine."""
    numbers = _range_classes(read, ranges)
    return _by_class(read, numbers[(numbers >= 0) & (numbers < read.schema.constant("class_count"))])


def _range_classes(read: Read, ranges: Ranges) -> Counts:
    """The class in the owner map of ranges that are blocks; -1 for others."""
    schema = read.schema
    is_block = (ranges.records["kind"] == schema.constant("range_live")) & (
        ranges.entries >> schema.constant("map_tag_shift") != 0
    )
    return np.where(is_block, (ranges.entries & schema.constant("map_class_mask")).astype(np.int64), -1)


def _by_class(read: Read, numbers: NDArray[Any], weights: NDArray[Any] | None = None) -> Counts:
    count = read.schema.constant("class_count")
    known = numbers < count
    sums = np.bincount(
        numbers[known], None if weights is None else weights[known].astype(np.float64), minlength=count
    )
    return sums.astype(np.int64)


def _tier(schema: Schema, number: int) -> str:
    if number < schema.constant("tiny_class_count"):
        return TIERS[0]
    return TIERS[1] if number < schema.constant("slab_class_count") else TIERS[2]


# ---- the rest --------------------------------------------------------------------------------------


def _big(read: Read, totals: dict[str, int]) -> BigFigures:
    blocks = None
    if read.ranges is not None:
        blocks = int((_range_classes(read, read.ranges) == read.schema.constant("map_class_big")).sum())
    return BigFigures(blocks, totals.get("big_live_bytes", 0))


def _threads(read: Read, process: Process | None, pid: int) -> list[ThreadFigures]:
    names = process.thread_names() if process else {}
    states = {
        read.schema.constants[key]: state for key, state in STATES.items() if key in read.schema.constants
    }
    tiers = np.array([_tier(read.schema, number) for number in range(read.schema.constant("class_count"))])
    magazine_bytes = magazine_counts(read.heaps) * read.block_bytes
    by_tier = {tier: magazine_bytes[:, tiers == tier].sum(axis=1).tolist() for tier in TIERS}
    owners = read.heaps["owner"]
    columns = zip(
        owners["number"].tolist(),
        thread_ids(read.heaps, read.schema, pid),
        owners["state"].tolist(),
        read.heaps["outbox_bytes"].tolist(),
        read.quarantined.bytes_by_heap(read.block_bytes, len(read.heaps)).tolist(),
        owners["bytes_out"].tolist(),
        owners["slow_paths"].tolist(),
        strict=True,
    )
    return [
        ThreadFigures(
            number=number,
            thread_id=thread_id,
            name=_thread_name(names, thread_id),
            state=states.get(state, f"state {state}"),
            magazine_bytes={tier: by_tier[tier][row] for tier in TIERS},
            outbox_bytes=outbox_bytes,
            quarantine_bytes=quarantine_bytes,
            bytes_out=max(0, bytes_out),
            slow_paths=slow_paths,
        )
        for row, (
            number,
            thread_id,
            state,
            outbox_bytes,
            quarantine_bytes,
            bytes_out,
            slow_paths,
        ) in enumerate(columns)
    ]


def _thread_name(names: dict[int, str], thread_id: int) -> str:
    return names.get(thread_id, "") if thread_id else ""


def _memory(read: Read, totals: dict[str, int], classes: list[ClassFigures]) -> MemoryFigures:
    cached_bytes = int((magazine_counts(read.heaps) * read.block_bytes).sum())
    quarantine_bytes = sum(figures.quarantine_blocks * figures.block_bytes for figures in classes)
    cached_bytes += int(read.heaps["outbox_bytes"].sum()) + quarantine_bytes
    metadata_bytes = totals.get("metadata_bytes", 0)
    if read.superslabs is None or read.ranges is None or read.window is None:
        live_bytes = _live_bytes_about(read, totals, cached_bytes)
        return MemoryFigures(live_bytes, cached_bytes, metadata_bytes, quarantine_bytes)
    superslabs, kinds = read.superslabs, _free_range_bytes(read, read.ranges, read.window)
    mapped = superslabs.superslabs["is_mapped"] != 0
    return MemoryFigures(
        live_bytes=sum(figures.live_bytes for figures in classes) + totals.get("big_live_bytes", 0),
        cached_bytes=cached_bytes,
        metadata_bytes=metadata_bytes,
        quarantine_bytes=quarantine_bytes,
        mapped_bytes=int(mapped.sum()) * read.window.chunk_bytes + kinds["mapped"],
        free_slab_bytes=sum(
            ((figures.free_blocks or 0) + (figures.remote_blocks or 0)) * figures.block_bytes
            for figures in classes
        ),
        ranges_dirty_bytes=kinds["dirty"],
        ranges_clean_bytes=kinds["clean"],
        ranges_cached_bytes=kinds["cached"],
        superslabs_by_fill=_by_fill(superslabs.active_slots[mapped], read.window.granules_per_chunk),
    )


def _live_bytes_about(read: Read, totals: dict[str, int], cached_bytes: int) -> int:
    """From what heaps count: blocks taken and not come back, but for those that lie in caches."""
    slab_bytes = int(read.heaps["owner"]["bytes_out"].sum())
    taken = slab_bytes + totals.get("large_live_bytes", 0) + totals.get("big_live_bytes", 0)
    return max(0, taken - cached_bytes)


def _free_range_bytes(read: Read, ranges: Ranges, window: Window) -> dict[str, int]:
    """Bytes of ranges: mapped ones together, and the free ones by kind."""
    schema, kind = read.schema, ranges.records["kind"]
    size = ranges.records["granules"].astype(np.int64) * window.granule_bytes
    is_cached = (kind == schema.constant("range_live")) & (_range_classes(read, ranges) < 0)
    chosen = {
        "mapped": ~np.isin(kind, _unmapped_kinds(schema)),
        "dirty": np.isin(kind, [schema.constant("range_dirty"), schema.constant("range_busy")]),
        "clean": kind == schema.constant("range_clean"),
        "cached": is_cached,
    }
    return {name: int(size[rows].sum()) for name, rows in chosen.items()}


def _unmapped_kinds(schema: Schema) -> list[int]:
    """Of ranges without addresses; an older library knows one kind."""
    names = ("range_unmapped", "range_occupied")
    return [schema.constants[name] for name in names if name in schema.constants]


def _by_fill(active_slots: Counts, slots: int) -> list[int]:
    """How many SuperSlabs are filled by 0 %, up to 10 %, up to 20 % …"""
    steps = -(-active_slots * (FILL_STEPS - 1) // slots)  # rounded up: one slot is more than 0 %
    return np.bincount(steps, minlength=FILL_STEPS).tolist()
