"""What the resident pages of hakmem's window hold, byte by byte.

    window   [ SuperSlab | ranges | SuperSlab | records | … ]
    pages      ▮▮▮▯▯▮▮▮▮   ▮▮▯▯▮     ▯▯▯▮▮▮▮     ▮▮▮▮         ▮ resident

Each resident byte of a slab belongs to a live block, a free one (its bit is set), a cached one (its address
lies in a magazine, an outbox or a quarantine), or the slab's tail behind the last block.  Free and cached
bytes are counted; what is left of a slab's resident bytes is live.  Law: the parts of a slab, and those of
the whole window, add up to its resident bytes.

How many of a live block's bytes the program asked for is known on average only: of the requests that missed
the magazine the library sums up the sizes, by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hakmem.census.reading import Addresses, Integers, Reading
from hakmem.layout.occupancy import bits_of, clip_to_capacity, set_bytes_by_page
from hakmem.target.pages import PAGE_BYTES, PageMap
from hakmem.target.threads import thread_ids

SLABS_AT_ONCE = 4096
NOWHERE = -1


@dataclass
class ClassResidency:
    """The resident bytes of one class's blocks; and how full its slabs are."""

    number: int
    tier: str
    block_bytes: int
    slabs: int = 0
    capacity_blocks: int = 0
    free_blocks: int = 0
    cached_blocks: int = 0
    live_bytes: int = 0  # rounding included
    requested_bytes: int = 0  # of those, about
    free_bytes: int = 0
    free_page_bytes: int = 0  # of those, in pages all of whose blocks are free
    cached_bytes: int = 0
    tail_bytes: int = 0
    mean_request_bytes: float | None = None

    @property
    def live_blocks(self) -> int:
        return max(0, self.capacity_blocks - self.free_blocks - self.cached_blocks)

    @property
    def rounding_bytes(self) -> int:
        return self.live_bytes - self.requested_bytes


@dataclass
class HeapResidency:
    """What one thread's magazines and outbox hold; its quarantine apart."""

    number: int
    thread_id: int
    state: int
    bytes: int
    quarantine_bytes: int


@dataclass
class Residency:
    """The window's resident bytes by what they hold; `accounted_bytes` is their sum."""

    classes: list[ClassResidency]
    heaps: list[HeapResidency]
    big_live_bytes: int = 0
    range_cached_bytes: int = 0
    range_free_bytes: int = 0
    empty_slab_bytes: int = 0
    unused_slab_bytes: int = 0
    kept_superslab_bytes: int = 0
    huge_fill_bytes: int = 0
    metadata_bytes: int = 0
    foreign_bytes: int = 0
    not_resident_live_bytes: int = 0  # of live blocks: never touched, or swapped out

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
        """In magazines, outboxes and quarantines."""
        return sum(item.cached_bytes for item in self.classes)

    @property
    def quarantine_bytes(self) -> int:
        """Of those, in quarantines."""
        return sum(heap.quarantine_bytes for heap in self.heaps)

    @property
    def pool_bytes(self) -> int:
        return self.empty_slab_bytes + self.unused_slab_bytes + self.kept_superslab_bytes

    @property
    def free_page_bytes(self) -> int:
        return sum(item.free_page_bytes for item in self.classes)

    @property
    def purgeable_bytes(self) -> int:
        """What a forced purge would return, the caches of the thread that calls left out."""
        return self.free_page_bytes + self.pool_bytes + self.range_cached_bytes + self.range_free_bytes

    @property
    def accounted_bytes(self) -> int:
        return (
            self.live_bytes
            + self.free_block_bytes
            + self.cached_bytes
            + self.pool_bytes
            + self.range_cached_bytes
            + self.range_free_bytes
            + self.huge_fill_bytes
            + self.metadata_bytes
            + self.foreign_bytes
        )


def measure(reading: Reading, pages: PageMap, foreign: NDArray[np.bool_] | None = None) -> Residency:
    """Splits the resident bytes of `pages`, which are the window's, by what they hold.

    `foreign` tells the chunks in which somebody else's mapping lies."""
    return Measuring(reading, pages).run(foreign)


class Measuring:
    """The steps of `measure`, over what they share."""

    def __init__(self, reading: Reading, pages: PageMap) -> None:
        self.reading, self.pages, self.window = reading, pages, reading.window
        self.slabs, self.ranges = reading.superslabs.slabs, reading.ranges
        count = max(self.window.granule_count, 1)
        self.slab_of_granule = np.full(count, NOWHERE, np.int64)
        self.range_of_granule = np.full(count, NOWHERE, np.int64)
        self.classes = [
            ClassResidency(
                number, reading.tier(number), int(size), mean_request_bytes=reading.mean_request_bytes(number)
            )
            for number, size in enumerate(reading.class_bytes)
        ]
        self.result = Residency(self.classes, [])

    def run(self, foreign: NDArray[np.bool_] | None) -> Residency:
        """All steps."""
        self.place_slabs()
        self.place_ranges()
        self.measure_cached()
        for number in np.unique(self.slabs["class"]).tolist():
            if number < self.reading.schema.constant("slab_class_count"):
                self.measure_slab_class(self.classes[number])
        self.measure_pool()
        self.measure_ranges()
        self.measure_rest(foreign)
        return self.result

    def granule_bytes_resident(self, granules: Integers) -> Integers:
        """Resident bytes of each granule."""
        begins = self.window.address_of(granules)
        return self.pages.resident_between(begins, begins + np.uint64(self.window.granule_bytes))

    # ---- where things lie ----

    def place_slabs(self) -> None:
        """Fills slab_of_granule."""
        first = self.window.granule_of(self.slabs["base"])
        rows = np.arange(len(first))
        for step in range(int(self.slabs["slot_count"].max(initial=0))):
            inside = (
                (self.slabs["slot_count"] > step) & (first >= 0) & (first + step < self.slab_of_granule.size)
            )
            self.slab_of_granule[first[inside] + step] = rows[inside]

    def place_ranges(self) -> None:
        """Fills range_of_granule with each range's first granule: cached blocks begin there."""
        self.range_of_granule[self.ranges.granule] = np.arange(len(self.ranges.granule))

    # ---- magazines, outboxes, quarantines ----

    def measure_cached(self) -> None:
        """Cached bytes by class and by thread."""
        cached = self.reading.cached
        granule = self.window.granule_of(cached.addresses)
        inside = (granule >= 0) & (granule < self.window.granule_count)
        addresses, heap_rows, granule = cached.addresses[inside], cached.heap_rows[inside], granule[inside]
        slab, piece = self.slab_of_granule[granule], self.range_of_granule[granule]
        in_quarantine = cached.in_quarantine[inside]
        in_slab, in_range = slab != NOWHERE, (slab == NOWHERE) & (piece != NOWHERE)
        self.cached_ranges = np.unique(piece[in_range])
        size = np.zeros(len(addresses), np.int64)
        size[in_slab] = self.slabs["block_bytes"][slab[in_slab]]
        ends = addresses + size.astype(np.uint64)
        resident = self.pages.resident_between(addresses, ends)
        resident[in_range] = self.range_resident()[piece[in_range]]
        number = np.full(len(addresses), NOWHERE, np.int64)
        number[in_slab] = self.slabs["class"][slab[in_slab]]
        number[in_range] = self.range_class()[piece[in_range]]
        for item in self.classes:
            of_class = number == item.number
            item.cached_blocks = int(of_class.sum())
            item.cached_bytes = int(resident[of_class].sum())
        self.cached_by_class = {
            item.number: resident[number == item.number] for item in self.classes if item.cached_blocks
        }
        count = len(self.reading.heaps)
        quarantined = np.bincount(heap_rows, resident * in_quarantine, count)
        self.measure_heaps(np.bincount(heap_rows, resident, count) - quarantined, quarantined)

    def measure_heaps(self, cached: NDArray[np.float64], quarantined: NDArray[np.float64]) -> None:
        """One row per heap: bytes in magazines and outbox, and in quarantine."""
        heaps = self.reading.heaps
        ids = thread_ids(heaps, self.reading.schema, self.reading.target.pid)
        self.result.heaps = [
            HeapResidency(
                number=int(heap["owner"]["number"]),
                thread_id=thread_id,
                state=int(heap["owner"]["state"]),
                bytes=int(held),
                quarantine_bytes=int(waiting),
            )
            for heap, thread_id, held, waiting in zip(heaps, ids, cached, quarantined, strict=True)
        ]

    # ---- slabs ----

    def measure_slab_class(self, item: ClassResidency) -> None:
        """Free, tail and live bytes of one class's slabs."""
        of_class = np.flatnonzero(self.slabs["class"] == item.number)
        held = 0
        for begin in range(0, len(of_class), SLABS_AT_ONCE):
            held += self.measure_slabs(item, of_class[begin : begin + SLABS_AT_ONCE])
        item.live_bytes = max(0, held - item.free_bytes - item.cached_bytes - item.tail_bytes)
        item.requested_bytes = min(item.live_bytes, self.requested_of_slabs(item))
        live_bytes = item.live_blocks * item.block_bytes
        self.result.not_resident_live_bytes += max(0, live_bytes - item.live_bytes)

    def measure_slabs(self, item: ClassResidency, rows: Integers) -> int:
        """Adds up some slabs of a class; their resident bytes."""
        slabs, memory, schema = self.slabs[rows], self.reading.target.memory, self.reading.schema
        capacity, slots = int(slabs["capacity"].max()), int(slabs["slot_count"].max())
        local, remote = self.reading.superslabs.bitmaps(memory, schema, rows)
        free = clip_to_capacity(local | remote, capacity)
        bases = slabs["base"]
        end_of_blocks = bases + np.uint64(capacity * item.block_bytes)
        ends = bases + np.uint64(slots * self.window.granule_bytes)
        page_count = slots * self.window.granule_bytes // PAGE_BYTES
        present = self.pages.present[
            np.clip(self.pages.pages_of(bases, page_count), 0, self.pages.present.size - 1)
        ]
        by_page = set_bytes_by_page(free, item.block_bytes, page_count, PAGE_BYTES)
        item.slabs += len(rows)
        item.capacity_blocks += capacity * len(rows)
        item.free_blocks += int(np.bitwise_count(free).sum())
        item.free_bytes += int((by_page * present).sum())
        item.free_page_bytes += int(((by_page == PAGE_BYTES) & present.astype(bool)).sum()) * PAGE_BYTES
        item.tail_bytes += int(self.pages.resident_between(end_of_blocks, ends).sum())
        if item.block_bytes >= PAGE_BYTES and item.mean_request_bytes is not None:
            item.requested_bytes += self.requested_of_mid(item, bases, bits_of(free)[:, :capacity])
        return int(self.pages.resident_between(bases, ends).sum())

    def requested_of_mid(self, item: ClassResidency, bases: Addresses, is_free: NDArray[np.bool_]) -> int:
        """Of blocks of a page and more the last pages may never have been touched: block by block."""
        step = np.arange(is_free.shape[1], dtype=np.uint64) * np.uint64(item.block_bytes)
        begins = bases[:, None] + step
        resident = self.pages.resident_between(begins, begins + np.uint64(item.block_bytes))
        return int(np.minimum(resident, item.mean_request_bytes)[~is_free].sum())

    def requested_of_slabs(self, item: ClassResidency) -> int:
        """The estimate for all live blocks of a class."""
        if item.mean_request_bytes is None:
            return item.live_bytes
        if item.block_bytes < PAGE_BYTES:
            return int(item.live_bytes * min(1.0, item.mean_request_bytes / item.block_bytes))
        cached = self.cached_by_class.get(item.number, np.zeros(0, np.int64))
        return max(0, item.requested_bytes - int(np.minimum(cached, item.mean_request_bytes).sum()))

    # ---- slots that no slab takes ----

    def measure_pool(self) -> None:
        """EMPTY and UNUSED slots, wholly free SuperSlabs, and what only huge pages made resident."""
        per_chunk = self.window.granules_per_chunk
        records, chunks = self.reading.superslabs.superslabs, self.reading.superslabs.chunks
        granules = chunks[:, None] * per_chunk + np.arange(per_chunk)
        slot = np.arange(per_chunk, dtype=np.uint32)
        is_free = self.slab_of_granule[granules] == NOWHERE
        is_unused = (records["unused"][:, None] >> slot) & 1 == 1
        is_dirty = (records["dirty"][:, None] >> slot) & 1 == 1
        is_kept = is_free.all(axis=1, keepdims=True) & np.ones_like(is_free)
        resident = self.granule_bytes_resident(granules.reshape(-1)).reshape(granules.shape)
        huge = self.huge_bytes(granules.reshape(-1)).reshape(granules.shape)
        fill = np.where(is_free & is_unused & ~is_dirty & ~is_kept, huge, 0)
        rest = np.where(is_free, resident - fill, 0)
        result = self.result
        result.huge_fill_bytes += int(fill.sum())
        result.kept_superslab_bytes = int(rest[is_kept].sum())
        result.unused_slab_bytes = int(rest[is_unused & ~is_kept].sum())
        result.empty_slab_bytes = int(rest.sum()) - result.kept_superslab_bytes - result.unused_slab_bytes

    def huge_bytes(self, granules: Integers) -> Integers:
        """Bytes of each granule that lie in huge pages."""
        per_granule = self.window.granule_bytes // PAGE_BYTES
        index = self.pages.pages_of(self.window.address_of(granules), per_granule)
        inside = np.clip(index, 0, max(0, self.pages.huge.size - 1))
        return self.pages.huge[inside].sum(axis=1) * PAGE_BYTES

    # ---- Large and Big blocks ----

    def range_ends(self) -> tuple[Addresses, Addresses]:
        """Begin and end of each range."""
        begins = self.window.address_of(self.ranges.granule)
        sizes = self.ranges.records["granules"].astype(np.uint64) * np.uint64(self.window.granule_bytes)
        return begins, begins + sizes

    def range_resident(self) -> Integers:
        """Resident bytes of each range."""
        return self.pages.resident_between(*self.range_ends())

    def range_class(self) -> Integers:
        """The class that the owner map tells of each range."""
        return (self.ranges.entries & self.reading.schema.constant("map_class_mask")).astype(np.int64)

    def measure_ranges(self) -> None:
        """Live, cached and free ranges."""
        constant, result = self.reading.schema.constant, self.result
        resident, kind, number = self.range_resident(), self.ranges.records["kind"], self.range_class()
        has_tag = self.ranges.entries >> np.uint32(constant("map_tag_shift")) != 0
        is_live = kind == constant("range_live")
        in_magazine = np.zeros(len(kind), bool)
        in_magazine[self.cached_ranges] = True
        is_big = is_live & has_tag & (number == constant("map_class_big"))
        is_clean = kind == constant("range_clean")
        fill = self.fill_of_ranges(is_clean)
        result.big_live_bytes = int(resident[is_big].sum())
        result.range_cached_bytes = int(resident[is_live & ~has_tag & ~in_magazine].sum())
        result.range_free_bytes = int(resident[~is_live].sum()) - fill
        result.huge_fill_bytes += fill
        is_large = is_live & has_tag & ~is_big & ~in_magazine
        for item in self.classes[constant("slab_class_count") :]:
            held = resident[is_large & (number == item.number)]
            item.capacity_blocks = len(held) + item.cached_blocks
            item.live_bytes = int(held.sum())
            mean = item.mean_request_bytes
            item.requested_bytes = int(np.minimum(held, mean).sum()) if mean is not None else item.live_bytes

    def fill_of_ranges(self, is_clean: NDArray[np.bool_]) -> int:
        """Bytes in CLEAN ranges that are resident because they lie in huge pages."""
        sums = np.zeros(self.pages.huge.size + 1, np.int64)
        np.cumsum(self.pages.huge, out=sums[1:])
        begins, ends = (self.window_pages(edges[is_clean]) for edges in self.range_ends())
        return int((sums[ends] - sums[begins]).sum()) * PAGE_BYTES

    def window_pages(self, addresses: Addresses) -> Integers:
        """The index of each address's page."""
        return np.clip((addresses.astype(np.int64) - self.pages.begin) // PAGE_BYTES, 0, self.pages.huge.size)

    # ---- the rest of the window ----

    def measure_rest(self, foreign: NDArray[np.bool_] | None) -> None:
        """Chunks without a record are hakmem's own records, or somebody else's mapping."""
        entries = self.window.chunk_map
        begins = self.window.address_of(np.arange(len(entries)) * self.window.granules_per_chunk)
        resident = self.pages.resident_between(begins, begins + np.uint64(self.window.chunk_bytes))
        no_record = entries == 0
        is_foreign = no_record & foreign if foreign is not None else np.zeros_like(no_record)
        self.result.metadata_bytes = int(resident[no_record & ~is_foreign].sum())
        self.result.foreign_bytes = int(resident[is_foreign].sum())
        self.result.range_free_bytes += max(0, self.pages.resident_bytes - self.result.accounted_bytes)
