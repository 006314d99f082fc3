"""hakmem's structures in one target, read as close to one moment as possible.

Caches and slabs are read in direct succession: a block that moves between them meanwhile is counted twice or
not at all.  So the error is at most what caches can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hakmem.base.progress import Progress, no_progress
from hakmem.census.figures import TIERS
from hakmem.layout.heaps import (
    magazine_blocks,
    magazine_counts,
    read_class_counters,
    read_heaps,
    read_quarantines,
)
from hakmem.layout.memory import Addresses, Integers, Records
from hakmem.layout.named_heaps import NamedHeaps, read_named_heaps
from hakmem.layout.schema import Schema
from hakmem.layout.structures import Ranges, Superslabs, Window, read_ranges, read_superslabs
from hakmem.target.target import Target

NOTHING = np.empty(0, np.int64)


@dataclass
class Blocks:
    """Blocks in the caches of heaps: one row each."""

    addresses: Addresses
    classes: Integers
    heap_rows: Integers


@dataclass
class Walk:
    """The data read besides heaps when slabs and ranges are walked."""

    window: Window
    superslabs: Superslabs
    ranges: Ranges


@dataclass
class Reading:
    """hakmem's structures in one target; without `walk` only its heaps."""

    target: Target
    heaps: Records
    class_bytes: Integers
    class_counters: Mapping[str, Integers]
    magazines: Integers  # blocks: [heap, class]
    quarantined: Blocks
    named: NamedHeaps
    walk: Walk | None = None

    @property
    def schema(self) -> Schema:
        return self.target.schema

    def mean_request_bytes(self, number: int) -> float | None:
        requests = int(self.class_counters["sampled_requests"][number])
        return int(self.class_counters["sampled_bytes"][number]) / requests if requests else None

    def tier(self, number: int) -> str:
        """The name of the class's tier, as in snapshots."""
        if number >= self.schema.constant("slab_class_count"):
            return TIERS[2]
        largest = self.class_bytes[self.schema.constant("tiny_class_count") - 1]
        return TIERS[int(self.class_bytes[number] > largest)]  # a fitted class by its size

    def magazine_blocks(self) -> Blocks:
        """The blocks in magazines; reads their addresses now."""
        addresses, classes = magazine_blocks(self.target.memory, self.heaps)
        return Blocks(addresses, classes, np.repeat(np.arange(len(self.heaps)), self.magazines.sum(axis=1)))


def read_quick(target: Target) -> Reading:
    """Only heaps: `top` reads these repeatedly."""
    return _read(target, None)


def read_full(target: Target, progress: Progress = no_progress) -> Reading:
    """Also slabs and ranges."""
    memory, schema = target.memory, target.schema
    window = Window(memory, schema)
    reading = _read(target, window)
    reading.walk = Walk(
        window,
        read_superslabs(memory, schema, window, lambda done: progress(done * 0.8)),
        read_ranges(memory, schema, window, lambda done: progress(0.8 + done * 0.2)),
    )
    return reading


def _read(target: Target, window: Window | None) -> Reading:
    memory, schema = target.memory, target.schema
    heaps = read_heaps(memory, schema, target.process.own_id(target.pid) if target.process else target.pid)
    count = schema.constant("class_count")
    return Reading(
        target=target,
        heaps=heaps,
        class_bytes=memory.array(schema.root("class_bytes"), np.dtype("u4"), count).astype(np.int64),
        class_counters=read_class_counters(memory, schema, heaps),
        magazines=magazine_counts(heaps, count),
        quarantined=_quarantined(target, heaps, window),
        named=read_named_heaps(memory, schema),
    )


def _quarantined(target: Target, heaps: Records, window: Window | None) -> Blocks:
    """Quarantined blocks with their classes from the owner map."""
    memory, schema = target.memory, target.schema
    blocks, rows = read_quarantines(memory, schema, heaps)
    if not len(blocks):
        return Blocks(blocks, NOTHING, NOTHING)
    window = window or Window(memory, schema)
    classes = window.slab_classes_of(blocks, schema)
    known = classes >= 0
    return Blocks(blocks[known], classes[known], rows[known])
