"""The content of the resident pages of hakmem's window, byte by byte.

    window   [ SuperSlab | ranges | SuperSlab | records | … ]
    pages      ▮▮▮▯▯▮▮▮▮   ▮▮▯▯▮     ▯▯▯▮▮▮▮     ▮▮▮▮         ▮ resident

Each resident byte of a slab belongs to a live block, a free one (its bit is set), a cached one (its address
lies in a magazine or a quarantine), or the slab's tail after the last block.  Free and
cached bytes are counted; what is left of a slab's resident bytes is live.  Law: the parts of a slab, and
those of the whole window, add up to its resident bytes.

How many bytes of a live block were requested is known only on average: the library sums the sizes of the
requests that missed the magazine, by class."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hakmem.census.census import Census, ClassCensus
from hakmem.census.heap_figures import NamedHeapFigures
from hakmem.census.named import named_heap_figures
from hakmem.census.reading import NOTHING, Blocks, Reading
from hakmem.layout.memory import Addresses, Flags, Integers
from hakmem.layout.occupancy import bits_of, set_bytes_by_page
from hakmem.layout.structures import rows_in
from hakmem.target.pages import PAGE_BYTES, PageMap


@dataclass
class HeapResidency:
    """The contents of one thread's magazines; separately its quarantine."""

    number: int
    thread_id: int
    state: int
    bytes: int
    quarantine_bytes: int


@dataclass
class Residency:
    """The window's resident bytes by content; `accounted_bytes` is their sum."""

    classes: list[ClassCensus]
    heaps: list[HeapResidency]
    big_live_bytes: int = 0
    range_cached_bytes: int = 0
    range_free_bytes: int = 0
    empty_slab_bytes: int = 0
    unused_slab_bytes: int = 0
    kept_superslab_bytes: int = 0
    metadata_bytes: int = 0
    foreign_bytes: int = 0
    not_resident_live_bytes: int = 0  # of live blocks: never touched, or swapped out
    named: Integers = field(default_factory=lambda: NOTHING)  # of all slabs and ranges of each named heap
    named_figures: list[NamedHeapFigures] = field(default_factory=list)

    @property
    def live_bytes(self) -> int:
        return sum(item.live_bytes for item in self.classes) + self.big_live_bytes

    @property
    def requested_bytes(self) -> int:
        return sum(item.requested_bytes for item in self.classes) + self.big_live_bytes

    @property
    def free_block_bytes(self) -> int:
        return sum(item.free_bytes + item.tail_bytes for item in self.classes)

    @property
    def cached_bytes(self) -> int:
        """In magazines and quarantines."""
        return sum(item.cached_bytes for item in self.classes)

    @property
    def quarantine_bytes(self) -> int:
        return sum(heap.quarantine_bytes for heap in self.heaps)

    @property
    def pool_bytes(self) -> int:
        return self.empty_slab_bytes + self.unused_slab_bytes + self.kept_superslab_bytes

    @property
    def purgeable_bytes(self) -> int:
        """Bytes that a forced purge would return, without the caches of the calling thread."""
        free_page_bytes = sum(item.free_page_bytes for item in self.classes)
        return free_page_bytes + self.pool_bytes + self.range_cached_bytes + self.range_free_bytes

    @property
    def movable_bytes(self) -> int:
        """Bytes that a defragmentation by the program would return."""
        return sum(item.movable_bytes for item in self.classes)

    @property
    def accounted_bytes(self) -> int:
        in_blocks = self.live_bytes + self.free_block_bytes + self.cached_bytes
        unused = self.pool_bytes + self.range_cached_bytes + self.range_free_bytes
        return in_blocks + unused + self.metadata_bytes + self.foreign_bytes


def measure(reading: Reading, pages: PageMap, foreign: Flags | None = None) -> Residency:
    """The census of a full reading, with the resident bytes of `pages`, the window's page map.

    `foreign` marks the chunks that contain a mapping not of hakmem."""
    return Measuring(Census.of(reading), pages).run(foreign)


class Measuring:
    """The steps of `measure` and their shared state."""

    def __init__(self, census: Census, pages: PageMap) -> None:
        reading = census.reading
        assert reading.walk is not None
        assert census.range_kinds is not None
        self.census, self.reading, self.pages = census, reading, pages
        self.window, self.superslabs = reading.walk.window, reading.walk.superslabs
        self.slabs, self.ranges, self.kinds = self.superslabs.slabs, reading.walk.ranges, census.range_kinds
        self.range_ends = self.ends_of_ranges()
        self.range_resident = pages.resident_between(*self.range_ends)
        self.is_in_magazine = np.zeros(len(self.range_resident), bool)
        self.resident_by_class = np.zeros(len(census.classes), np.int64)  # of slabs
        self.result = Residency(census.classes, [], named=np.zeros(len(reading.named), np.int64))

    def run(self, foreign: Flags | None) -> Residency:
        self.measure_cached()
        self.census.count_slabs(self.measure_slabs)
        for item in self.census.classes[: self.reading.schema.constant("slab_class_count")]:
            self.measure_live(item)
        self.measure_pool()
        self.measure_ranges()
        self.measure_rest(foreign)
        self.result.named_figures = named_heap_figures(self.census)
        return self.result

    # ---- magazines, quarantines ----

    def measure_cached(self) -> None:
        caches = (self.reading.magazine_blocks(), self.reading.quarantined)
        resident = [self.resident_of(blocks) for blocks in caches]
        classes = np.concatenate([blocks.classes for blocks in caches])
        together = np.concatenate(resident)
        numbers = np.flatnonzero(self.census.by_class(classes)).tolist()
        self.cached_by_class = {number: together[classes == number] for number in numbers}
        for number, held in self.cached_by_class.items():
            self.census.classes[number].cached_bytes = int(held.sum())
        count = len(self.reading.heaps)
        magazines, quarantines = (
            np.bincount(blocks.heap_rows, held, count) for blocks, held in zip(caches, resident, strict=True)
        )
        owners, thread_ids = self.reading.heaps["owner"], self.reading.heaps["thread_id"]
        columns = (owners["number"], thread_ids, owners["state"], magazines, quarantines)
        rows = zip(*(column.astype(int).tolist() for column in columns), strict=True)
        self.result.heaps = [HeapResidency(*row) for row in rows]

    def resident_of(self, blocks: Blocks) -> Integers:
        """The resident bytes of each block; of a Large one those of its range."""
        ends = blocks.addresses + self.reading.class_bytes[blocks.classes].astype(np.uint64)
        resident = self.pages.resident_between(blocks.addresses, ends)
        is_large = blocks.classes >= self.reading.schema.constant("slab_class_count")
        row, is_range = rows_in(self.ranges.granule, self.window.granule_of(blocks.addresses[is_large]))
        resident[is_large] = 0
        resident[np.flatnonzero(is_large)[is_range]] = self.range_resident[row[is_range]]
        self.is_in_magazine[row[is_range]] = True
        return resident

    # ---- slabs ----

    def measure_slabs(self, item: ClassCensus, rows: Integers, local: Addresses, remote: Addresses) -> None:
        """Adds the free, tail and resident bytes of some slabs of a class."""
        slabs, size = self.slabs[rows], item.block_bytes
        capacity, slots = int(slabs["capacity"].max()), int(slabs["slot_count"].max())
        bases = slabs["base"]
        ends = bases + np.uint64(slots * self.window.granule_bytes)
        page_count = slots * self.window.granule_bytes // PAGE_BYTES
        present = self.pages.present_pages(bases, page_count)
        free = local | remote
        by_page = set_bytes_by_page(free, size, page_count, PAGE_BYTES)
        item.free_bytes += int((by_page * present).sum())
        item.free_page_bytes += int(((by_page == PAGE_BYTES) & present.astype(bool)).sum()) * PAGE_BYTES
        end_of_blocks = bases + np.uint64(capacity * size)
        item.tail_bytes += int(self.pages.resident_between(end_of_blocks, ends).sum())
        if size >= PAGE_BYTES and item.mean_request_bytes is not None:
            is_taken = ~bits_of(free)[:, :capacity]
            item.requested_bytes += self.requested_of_mid(item, bases, is_taken)
        resident = self.pages.resident_between(bases, ends)
        self.resident_by_class[item.number] += int(resident.sum())
        self.measure_named(self.reading.named.rows_of(slabs["owner"].astype(np.uint64)), resident)

    def measure_named(self, rows: Integers, resident: Integers) -> None:
        """Adds resident bytes to the named heaps that they are of; row -1: to none."""
        is_named = rows >= 0
        np.add.at(self.result.named, rows[is_named], resident[is_named])

    def requested_of_mid(self, item: ClassCensus, bases: Addresses, is_taken: Flags) -> int:
        """Block by block: the last pages of blocks of a page and more may never have been touched."""
        step = np.arange(is_taken.shape[1], dtype=np.uint64) * np.uint64(item.block_bytes)
        starts = bases[:, None] + step
        resident = self.pages.resident_between(starts, starts + np.uint64(item.block_bytes))
        assert item.mean_request_bytes is not None
        return int(np.minimum(resident, item.mean_request_bytes)[is_taken].sum())

    def measure_live(self, item: ClassCensus) -> None:
        """The remaining bytes of a class's slabs; how many of them were requested."""
        held = int(self.resident_by_class[item.number])
        item.live_bytes = max(0, held - item.free_bytes - item.cached_bytes - item.tail_bytes)
        item.requested_bytes = min(item.live_bytes, self.requested_of_slabs(item))
        live_bytes = item.live_blocks * item.block_bytes
        self.result.not_resident_live_bytes += max(0, live_bytes - item.live_bytes)

    def requested_of_slabs(self, item: ClassCensus) -> int:
        """The estimate for all live blocks of a class."""
        mean = item.mean_request_bytes
        if mean is None:
            return item.live_bytes
        if item.block_bytes < PAGE_BYTES:
            return int(item.live_bytes * min(1.0, mean / item.block_bytes))
        cached = self.cached_by_class.get(item.number, np.zeros(0, np.int64))
        return max(0, item.requested_bytes - int(np.minimum(cached, mean).sum()))

    # ---- slots without a slab ----

    def is_free_slot(self, granules: Integers) -> Flags:
        """The slots of each SuperSlab without a slab: [SuperSlab, slot], as their granules are."""
        first, counts = self.window.granule_of(self.slabs["base"]), self.slabs["slot_count"]
        steps = np.arange(int(counts.max(initial=0)))
        granule = (first[:, None] + steps)[steps < counts[:, None]]
        is_taken = np.zeros(max(self.window.granule_count, 1), bool)
        is_taken[granule[(granule >= 0) & (granule < self.window.granule_count)]] = True
        is_free: Flags = ~is_taken[granules]
        return is_free

    def measure_pool(self) -> None:
        """EMPTY and UNUSED slots, and completely free SuperSlabs."""
        per_chunk = self.window.granules_per_chunk
        records = self.superslabs.superslabs
        granules = self.superslabs.chunks[:, None] * per_chunk + np.arange(per_chunk)
        slot = np.arange(per_chunk, dtype=np.uint32)
        is_free = self.is_free_slot(granules)
        is_unused = (records["unused"][:, None] >> slot) & 1 == 1
        is_kept = is_free.all(axis=1, keepdims=True) & np.ones_like(is_free)
        starts = self.window.address_of(granules)
        resident = self.pages.resident_between(starts, starts + np.uint64(self.window.granule_bytes))
        rest = np.where(is_free, resident, 0)
        result = self.result
        result.kept_superslab_bytes = int(rest[is_kept].sum())
        result.unused_slab_bytes = int(rest[is_unused & ~is_kept].sum())
        result.empty_slab_bytes = int(rest.sum()) - result.kept_superslab_bytes - result.unused_slab_bytes

    # ---- Large and Big blocks ----

    def ends_of_ranges(self) -> tuple[Addresses, Addresses]:
        starts = self.window.address_of(self.ranges.granule)
        sizes = self.ranges.records["granules"].astype(np.uint64) * np.uint64(self.window.granule_bytes)
        return starts, starts + sizes

    def measure_ranges(self) -> None:
        kinds, resident, result = self.kinds, self.range_resident, self.result
        is_live = (kinds.classes >= 0) | kinds.is_cached
        result.big_live_bytes = int(resident[kinds.is_big].sum())
        self.measure_named(self.reading.named.rows_of_numbers(kinds.named), resident)
        result.range_cached_bytes = int(resident[kinds.is_cached & ~self.is_in_magazine].sum())
        result.range_free_bytes = int(resident[~is_live].sum())
        is_large = ~kinds.is_big & ~self.is_in_magazine
        is_held = kinds.is_big | (is_large & (kinds.classes >= 0))
        colour = self.ranges.records["colour_bytes"].astype(np.int64)
        open_bytes = self.ranges.open_ends(self.window) - colour // PAGE_BYTES * PAGE_BYTES
        result.not_resident_live_bytes += int(np.maximum(open_bytes - resident, 0)[is_held].sum())
        for item in self.census.classes[self.reading.schema.constant("slab_class_count") :]:
            held = resident[is_large & (kinds.classes == item.number)]
            item.live_bytes = int(held.sum())
            mean = item.mean_request_bytes
            item.requested_bytes = int(np.minimum(held, mean).sum()) if mean is not None else item.live_bytes

    # ---- the rest of the window ----

    def measure_rest(self, foreign: Flags | None) -> None:
        """Chunks without a record are hakmem's own records or foreign mappings."""
        entries = self.window.chunk_map
        starts = self.window.address_of(np.arange(len(entries)) * self.window.granules_per_chunk)
        resident = self.pages.resident_between(starts, starts + np.uint64(self.window.chunk_bytes))
        no_record = entries == 0
        is_foreign = no_record & foreign if foreign is not None else np.zeros_like(no_record)
        self.result.metadata_bytes = int(resident[no_record & ~is_foreign].sum())
        self.result.foreign_bytes = int(resident[is_foreign].sum())
        self.result.range_free_bytes += max(0, self.pages.resident_bytes - self.result.accounted_bytes)
