"""The one count of blocks by place; with a page map, also of the resident bytes that they hold.

    law   capacity = free + remote + live + magazines + quarantines, per class of slabs
          large:  ranges in use = live + magazines

`stat`, `top`, `record`, `export` and `core` show the blocks, `why` the bytes (residency.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from hakmem.census.reading import NOTHING, Reading
from hakmem.layout.memory import Addresses, Flags, Integers, Records
from hakmem.layout.named_heaps import named_range_numbers
from hakmem.layout.occupancy import clip_to_capacity, count_bits
from hakmem.layout.schema import Schema
from hakmem.layout.structures import Ranges, classes_of

SLABS_AT_ONCE = 4096


@dataclass
class ClassCensus:
    """The blocks of one class; with a page map, the resident bytes that they hold."""

    number: int
    tier: str
    block_bytes: int
    mean_request_bytes: float | None = None
    magazine_blocks: int = 0
    quarantine_blocks: int = 0
    slabs: int = 0
    capacity_blocks: int = 0  # of slabs; of Large classes the ranges in use
    free_blocks: int = 0  # known to the owner
    remote_blocks: int = 0  # freed by other threads, not collected yet

    # Resident bytes; 0 without a page map.
    live_bytes: int = 0  # rounding included
    requested_bytes: int = 0  # of those, estimated
    free_bytes: int = 0
    free_page_bytes: int = 0  # of those, in pages all of whose blocks are free
    cached_bytes: int = 0
    tail_bytes: int = 0  # of slabs, after the last block

    @property
    def cached_blocks(self) -> int:
        """In magazines and quarantines."""
        return self.magazine_blocks + self.quarantine_blocks

    @property
    def live_blocks(self) -> int:
        return max(0, self.capacity_blocks - self.free_blocks - self.remote_blocks - self.cached_blocks)

    @property
    def movable_bytes(self) -> int:
        """Resident bytes of free blocks that would go if the others moved into as few slabs as hold them."""
        if not self.slabs:
            return 0
        taken_blocks = self.capacity_blocks - self.free_blocks - self.remote_blocks
        spare_blocks = -taken_blocks % (self.capacity_blocks // self.slabs)
        return max(0, self.free_bytes - spare_blocks * self.block_bytes)

    @property
    def rounding_bytes(self) -> int:
        """Resident bytes of live blocks beyond the requested ones."""
        return self.live_bytes - self.requested_bytes


@dataclass
class RangeKinds:
    """The kinds of ranges: one row each."""

    classes: Integers  # of those that are blocks; -1 for others
    named: Integers  # the number of the named heap, whose ranges are all Big; 0: no such heap's
    is_big: Flags
    is_cached: Flags  # kept whole: in a magazine, the call-site cache or a quarantine
    is_dirty: Flags  # free, not purged
    is_clean: Flags  # free, purged or never used
    is_mapped: Flags

    @classmethod
    def of(cls, ranges: Ranges, schema: Schema) -> RangeKinds:
        kind = ranges.records["kind"]
        is_live = kind == schema.constant("range_live")
        has_tag = ranges.entries >> np.uint32(schema.constant("map_tag_shift")) != 0
        numbers = classes_of(schema, ranges.entries)
        heaps = named_range_numbers(schema, ranges.entries)
        classes = np.where(is_live & has_tag, numbers, -1)
        unmapped = [schema.constant(name) for name in ("range_unmapped", "range_occupied")]
        return cls(
            classes=classes,
            named=np.where(is_live, heaps, 0),
            is_big=classes == schema.constant("map_class_big"),
            is_cached=is_live & ~has_tag,
            is_dirty=np.isin(kind, [schema.constant("range_dirty"), schema.constant("range_busy")]),
            is_clean=kind == schema.constant("range_clean"),
            is_mapped=~np.isin(kind, unmapped),
        )


# Some slabs of one class, with their local and remote bits: [slab, word].
Visitor: TypeAlias = "Callable[[ClassCensus, Integers, Addresses, Addresses], None]"


@dataclass
class Census:
    """The count of one reading; without a walk, of what heaps hold."""

    reading: Reading
    classes: list[ClassCensus]
    range_kinds: RangeKinds | None = None
    named_slab_bytes: Integers = field(default_factory=lambda: NOTHING)  # live, of each named heap

    @classmethod
    def of(cls, reading: Reading) -> Census:
        """Everything but the slabs, which `count_slabs` walks."""
        classes = [
            ClassCensus(number, reading.tier(number), size, reading.mean_request_bytes(number))
            for number, size in enumerate(reading.class_bytes.tolist())
        ]
        census = cls(reading, classes)
        census.note("magazine_blocks", reading.magazines.sum(axis=0))
        census.note("quarantine_blocks", census.by_class(reading.quarantined.classes))
        if reading.walk is not None:
            # Large blocks: ranges that belong to a thread are live or in its magazine.
            census.range_kinds = RangeKinds.of(reading.walk.ranges, reading.schema)
            census.note("capacity_blocks", census.by_class(census.range_kinds.classes))
        return census

    def by_class(self, classes: Records) -> Integers:
        """How often each class occurs; other values are ignored."""
        count = len(self.classes)
        return np.bincount(classes[(classes >= 0) & (classes < count)], minlength=count)

    def note(self, name: str, column: Integers) -> None:
        for item, value in zip(self.classes, column.tolist(), strict=True):
            setattr(item, name, value)

    def count_slabs(self, visit: Visitor | None = None) -> None:
        """The one walk over slabs, by class and in batches; `visit` sees what is counted."""
        walk = self.reading.walk
        assert walk is not None
        memory, schema = self.reading.target.memory, self.reading.schema
        numbers = walk.superslabs.slabs["class"]
        self.named_slab_bytes = np.zeros(len(self.reading.named), np.int64)
        counts = self.by_class(numbers)[: schema.constant("slab_class_count")]
        for number in np.flatnonzero(counts).tolist():  # np.unique would load numpy.ma
            item, of_class = self.classes[number], np.flatnonzero(numbers == number)
            item.slabs = len(of_class)
            item.capacity_blocks = int(walk.superslabs.slabs["capacity"][of_class].sum())
            for first in range(0, len(of_class), SLABS_AT_ONCE):
                rows = of_class[first : first + SLABS_AT_ONCE]
                local, remote = walk.superslabs.bitmaps(memory, schema, rows)
                capacity = int(walk.superslabs.slabs["capacity"][rows].max())
                local, remote = clip_to_capacity(local, capacity), clip_to_capacity(remote, capacity)
                item.free_blocks += int(count_bits(local & ~remote).sum())
                item.remote_blocks += int(count_bits(remote).sum())
                if len(self.reading.named):
                    self.count_named(item, walk.superslabs.slabs[rows], local | remote)
                if visit is not None:
                    visit(item, rows, local, remote)

    def count_named(self, item: ClassCensus, slabs: Records, free: Addresses) -> None:
        """Counts live blocks in slabs of named heaps: no thread caches blocks of these."""
        rows = self.reading.named.rows_of(slabs["owner"].astype(np.uint64))
        live = slabs["capacity"].astype(np.int64) - count_bits(free).sum(axis=1, dtype=np.int64)
        is_named = rows >= 0
        np.add.at(self.named_slab_bytes, rows[is_named], live[is_named] * item.block_bytes)


def count(reading: Reading) -> Census:
    """The blocks, without a page map."""
    census = Census.of(reading)
    if reading.walk is not None:
        census.count_slabs()
    return census
