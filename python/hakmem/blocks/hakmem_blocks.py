"""hakmem's heap as blocks, with all that its structures tell of one of them."""

from __future__ import annotations

import numpy as np

from hakmem.base.errors import UnreadableError
from hakmem.base.progress import Progress, no_progress
from hakmem.blocks.block_map import Details, HeapName, NamedHeap, State
from hakmem.blocks.slab_blocks import NO_RANGE, SlabBlocks, read_slabs
from hakmem.census.snapshot import thread_figures
from hakmem.layout.named_heaps import named_range_numbers
from hakmem.target.target import Target

RANGE_STATES = {
    "range_dirty": "free range, not purged",
    "range_busy": "free range, being purged",
    "range_clean": "free range, purged",
    "range_unmapped": "free range, unmapped",
    "range_occupied": "free range, in which something else is mapped",
    "range_live": "free range, kept whole for reuse",
}
STATE_TEXTS = {
    State.LIVE: "live",
    State.FREE: "free, in its slab",
    State.REMOTE: "free: another thread freed it, its slab's heap has not collected it yet",
    State.MAGAZINE: "cached: freed, in a magazine",
    State.QUARANTINE: "freed, in a quarantine",
}


class HakmemBlocks(SlabBlocks):
    def place_of(self, address: int, elsewhere: str) -> str:
        """Describes an address outside all blocks."""
        window = self.window
        granule = (address - window.base) // window.granule_bytes
        if not 0 <= granule < window.granule_count:
            return elsewhere
        entry = int(window.chunk_map[granule // window.granules_per_chunk])
        if not entry:
            return "in hakmem's records, or in memory of others in its window"
        if entry & self.reading.schema.constant("chunk_is_ranges"):
            return "in a chunk of ranges, in no range's block: before its first byte, or after its last"
        slabs = self.walk.superslabs.slabs
        ends = slabs["base"] + (slabs["slot_count"].astype(np.uint64) * np.uint64(window.granule_bytes))
        inside = (slabs["base"] <= np.uint64(address)) & (np.uint64(address) < ends)
        return "in a SuperSlab, " + ("in a slab's tail" if inside.any() else "in an UNUSED slot: no slab")

    def details_of(self, block: int) -> Details:
        one, state = np.array([block]), State(int(self.states[block]))
        number, start, place = (int(of(one)[0]) for of in (self.classes_of, self.starts_of, self.places_of))
        slab_row, range_row = int(self.places.slab_rows[place]), int(self.places.range_rows[place])
        heap = named_heap_of(self, slab_row, range_row)
        return Details(
            size_class=number if number >= 0 else None,
            tier=self.reading.tier(number) if number >= 0 else "big",
            state_text=state_text(self, range_row, state),
            heap=heap,
            owner=None if heap else owner_of(self, start, slab_row),
            cached_by=cached_by(self, start, state),
        )


def read(target: Target, progress: Progress = no_progress) -> HakmemBlocks:
    return read_slabs(target, progress, HakmemBlocks)


def state_text(found: SlabBlocks, range_row: int, state: State) -> str:
    """The state in words; of ranges their own states."""
    if state is not State.FREE or range_row == NO_RANGE:
        return STATE_TEXTS[state]
    walk, constants = found.walk, found.reading.schema.constants
    kind = int(walk.ranges.records["kind"][range_row])
    return next((text for name, text in RANGE_STATES.items() if constants.get(name) == kind), "free range")


# ---- whose -----------------------------------------------------------------------------------------


def named_heap_of(found: SlabBlocks, slab_row: int, range_row: int) -> NamedHeap | None:
    """The heap that the program has made and that the block's slab or range is of."""
    named, walk = found.reading.named, found.walk
    if slab_row >= 0:
        row = named.rows_of(walk.superslabs.slabs["owner"][[slab_row]].astype(np.uint64))[0]
    else:
        entries = walk.ranges.entries[[range_row]]
        row = named.rows_of_numbers(named_range_numbers(found.reading.schema, entries))[0]
    if row < 0:
        return None
    return NamedHeap(int(named.numbers[row]), named.names[row], int(named.records["tag"][row]))


def owner_of(found: SlabBlocks, start: int, slab_row: int) -> HeapName | None:
    """The heap that owns the block's slab; of Large and Big blocks, and of samples, there is none."""
    reading, window = found.reading, found.window
    # Named heaps, that of samples among them, have numbers of their own.
    granule = (start - window.base) // window.granule_bytes
    if slab_row < 0 or int(window.owner_map[granule]) >= reading.schema.constant("map_tag_named"):
        return None
    owner = int(found.walk.superslabs.slabs["owner"][slab_row])
    place = owner + reading.schema.offset("owner", "number")
    try:
        number = int(reading.target.memory.array(place, np.dtype("u4"), 1)[0])
    except UnreadableError:  # a torn record
        return None
    rows = np.flatnonzero(reading.heaps["owner"]["number"] == number)
    return heap_name(found, int(rows[0])) if len(rows) else None


def cached_by(found: SlabBlocks, start: int, state: State) -> HeapName | None:
    """The heap in whose magazine or quarantine the block is."""
    held = found.caches.get(state)
    if held is None:
        return None
    rows = np.flatnonzero(held.addresses == np.uint64(start))
    return heap_name(found, int(held.heap_rows[rows[0]])) if len(rows) else None


def heap_name(found: SlabBlocks, row: int) -> HeapName:
    one = thread_figures(found.reading)[row]
    return HeapName(one.number, one.thread_id, one.name, one.state, one.heap_name)
