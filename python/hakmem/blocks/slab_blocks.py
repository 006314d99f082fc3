"""hakmem's blocks, of slabs and ranges.

    window     [ slab of 48-byte blocks | slab | range | … ]
    place        1                        2      3            a slab, or a range: start, block size, how many
    block        0 1 2 3 …                       n            numbered through, in the order of addresses

An address leads to its granule, the granule to its place, one multiplication to the block: all by tables,
so that millions of words are looked up at once.  Place 0 has no blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from hakmem.base.progress import Progress
from hakmem.blocks.block_map import NONE, BlockMap, State
from hakmem.census.census import Census, ClassCensus
from hakmem.census.reading import Blocks, Reading, Walk, read_full
from hakmem.census.scan import map_addresses
from hakmem.layout.memory import Addresses, Bytes, Flags, Integers, Numbers, Records
from hakmem.layout.occupancy import BITS_PER_WORD, bits_of
from hakmem.layout.structures import Window, runs_of
from hakmem.target.pages import Interval
from hakmem.target.process import Mapping
from hakmem.target.target import Target

Kind = TypeVar("Kind", bound="SlabBlocks")

SLABS_AT_ONCE = 256
RECIPROCAL_SHIFT = 40  # exact for offsets in a slab: below 2^18, of blocks below 2^16
SLAB_BYTES_MAX = 1 << 18
BLOCK_BYTES_MAX = 1 << 16
NO_RANGE, NO_SLAB = -1, -1


@dataclass
class Places:
    """Slabs and ranges, one row each, by address; the first one stands for no place."""

    starts: Addresses  # of the first block
    extents: Addresses  # bytes from there to the end of the last block
    block_bytes: Integers
    reciprocals: Addresses  # 2^40 / block_bytes, rounded up; 0: there is one block
    first_blocks: Integers  # the number of each place's first block; one more row: how many there are
    classes: Integers  # NONE: Big, or no block's
    slab_rows: Integers  # NO_SLAB: a range
    range_rows: Integers


@dataclass
class SlabBlocks(BlockMap):
    reading: Reading
    walk: Walk
    places: Places
    place_of_granule: Numbers
    states: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))
    caches: dict[State, Blocks] = field(default_factory=dict)  # the contents of heaps' caches

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self.reading.target

    @property
    def class_bytes(self) -> Integers:  # type: ignore[override]
        return self.reading.class_bytes

    @property
    def window(self) -> Window:
        return self.walk.window

    @property
    def base(self) -> int:
        return self.window.base

    def candidates(self, words: Addresses) -> Integers:
        used_bytes = len(self.place_of_granule) * self.window.granule_bytes
        return np.flatnonzero(words - np.uint64(self.base) < np.uint64(used_bytes))

    def find(self, addresses: Addresses) -> tuple[Integers, Integers]:
        offsets = addresses - np.uint64(self.base)
        shift = np.uint64(self.window.granule_bytes.bit_length() - 1)
        granules = np.minimum(offsets >> shift, np.uint64(max(0, len(self.place_of_granule) - 1)))
        rows = self.place_of_granule[granules]
        into = addresses - self.places.starts[rows]  # wraps round below the start
        is_inside = into < self.places.extents[rows]
        index = (into * self.places.reciprocals[rows]) >> np.uint64(RECIPROCAL_SHIFT)
        into -= index * self.places.block_bytes[rows].view(np.uint64)
        blocks = self.places.first_blocks[rows] + index.view(np.int64)
        return np.where(is_inside, blocks, NONE), np.where(is_inside, into.view(np.int64), 0)

    def places_of(self, blocks: Integers) -> Integers:
        """The rows of the places that these blocks are in."""
        return np.searchsorted(self.places.first_blocks, blocks, "right") - 1

    def find_sampled(self, places: Addresses) -> Integers:
        """The sampler knows a block by its address; those that are ranges, by the granule that they begin in,
        as realloc may move a Big block there."""
        blocks, _ = self.find(places)
        granules = (places - np.uint64(self.base)) // np.uint64(self.window.granule_bytes)
        rows = self.place_of_granule[
            np.minimum(granules, np.uint64(len(self.place_of_granule) - 1)).astype(np.int64)
        ]
        is_range = self.places.range_rows[rows] != NO_RANGE
        return np.where((blocks == NONE) & is_range, self.places.first_blocks[rows], blocks)

    def starts_of(self, blocks: Integers) -> Addresses:
        rows = self.places_of(blocks)
        index = (blocks - self.places.first_blocks[rows]).astype(np.uint64)
        return self.places.starts[rows] + index * self.places.block_bytes[rows].astype(np.uint64)

    def sizes_of(self, blocks: Integers) -> Integers:
        return self.places.block_bytes[self.places_of(blocks)]

    def classes_of(self, blocks: Integers) -> Integers:
        return self.places.classes[self.places_of(blocks)]

    def memory(self) -> list[Interval]:
        """Ranges first: large arrays point to many blocks."""
        entries = self.window.chunk_map
        has_ranges = entries & np.uint64(self.reading.schema.constant("chunk_is_ranges")) != 0
        return chunk_runs(self, has_ranges) + chunk_runs(self, (entries != 0) & ~has_ranges)

    def own(self, mappings: Sequence[Mapping]) -> list[Interval]:
        """Chunks with neither blocks nor records are foreign."""
        maps = map_addresses(self.target)
        ours = [(one.start, one.end) for one in mappings if any(one.start <= at < one.end for at in maps)]
        return sorted([*ours, *chunk_runs(self, (self.window.chunk_map != 0) | record_chunks(self))])


def read_slabs(target: Target, progress: Progress, kind: type[Kind]) -> Kind:
    reading = read_full(target, progress)
    census = Census.of(reading)
    walk, kinds = reading.walk, census.range_kinds
    assert walk is not None
    assert kinds is not None
    places = _places(walk, reading.class_bytes, kinds.classes)
    found = kind(reading, walk, places, _place_of_granule(walk.window, places))
    found.states = np.full(int(places.first_blocks[-1]), State.LIVE, np.uint8)
    caches = {State.MAGAZINE: reading.magazine_blocks(), State.QUARANTINE: reading.quarantined}
    _mark_slabs(found, census)
    _mark_ranges(found, kinds.classes)
    for state, cached in caches.items():
        blocks, into = found.find(cached.addresses)
        found.states[blocks[(blocks >= 0) & (into == 0)]] = state
        found.caches[state] = cached
    return found


# ---- memory ----------------------------------------------------------------------------------------


def chunk_runs(found: SlabBlocks, is_chosen: Flags) -> list[Interval]:
    """The chosen chunks as intervals of addresses."""
    bounds = found.base + np.column_stack(runs_of(is_chosen)) * found.window.chunk_bytes
    return [(low, high) for low, high in bounds.tolist()]


def record_chunks(found: SlabBlocks) -> Flags:
    """The chunks that hold hakmem's records: those that some known record lies in.  Others without blocks are
    foreign."""
    reading, window = found.reading, found.window
    walk, heaps = found.walk, reading.heaps
    flag = np.uint64(reading.schema.constant("chunk_is_ranges"))
    known = [
        window.chunk_map & ~flag,
        walk.superslabs.addresses,
        walk.superslabs.slabs["local"].reshape(-1),
        heaps["magazines"]["top"].reshape(-1),
        heaps["class_counters"],
        profile_tables(reading),
    ]
    addresses = np.concatenate([values.astype(np.uint64) for values in known])
    chunks = (addresses - np.uint64(window.base)) // np.uint64(window.chunk_bytes)
    is_known = np.zeros(len(window.chunk_map), bool)
    is_known[chunks[chunks < len(is_known)].astype(np.int64)] = True
    return is_known


def profile_tables(reading: Reading) -> Addresses:
    """The tables of a heap profile: they name sampled blocks, and must not keep them reachable."""
    state = reading.schema.structure(reading.target.memory, "profile_state")
    segments = (state["sample_segments"], state["site_segments"])
    return np.concatenate(segments).astype(np.uint64)


# ---- places ----------------------------------------------------------------------------------------


def _places(walk: Walk, class_bytes: Integers, range_classes: Integers) -> Places:
    """Slabs and ranges by address.  Rows that cannot be, torn or damaged ones, have no blocks."""
    columns = [_slab_columns(walk), _range_columns(walk, class_bytes, range_classes)]
    # The first row stands for addresses outside all places.
    nowhere = {"starts": 0, "classes": NONE, "slab_rows": NO_SLAB, "range_rows": NO_RANGE}
    table = {
        name: np.concatenate([np.array([nowhere.get(name, 0)], first.dtype), first, columns[1][name]])
        for name, first in columns[0].items()
    }
    order = np.argsort(table["starts"], kind="stable")
    table = {name: values[order] for name, values in table.items()}
    sizes = np.maximum(table["block_bytes"], 1)
    is_slab = table["slab_rows"] != NO_SLAB
    whole = np.uint64(1 << RECIPROCAL_SHIFT)
    reciprocals = np.where(is_slab, -(-int(whole) // sizes), 0).astype(np.uint64)
    counts = table.pop("counts")
    extents = (counts * table["block_bytes"]).astype(np.uint64)
    first_blocks = np.concatenate([[0], np.cumsum(counts)])
    return Places(**table, extents=extents, reciprocals=reciprocals, first_blocks=first_blocks)


def _slab_columns(walk: Walk) -> dict[str, Records]:
    window, slabs = walk.window, walk.superslabs.slabs
    sizes, counts = slabs["block_bytes"].astype(np.int64), slabs["capacity"].astype(np.int64)
    room = np.minimum(slabs["slot_count"].astype(np.int64) * window.granule_bytes, SLAB_BYTES_MAX)
    granules = window.granule_of(slabs["base"])
    is_sane = (sizes > 0) & (sizes < BLOCK_BYTES_MAX) & (counts * sizes <= room)
    is_sane &= (granules >= 0) & (granules < window.granule_count)
    rows = np.flatnonzero(is_sane)
    return {
        "starts": slabs["base"][rows].astype(np.uint64),
        "block_bytes": sizes[rows],
        "counts": counts[rows],
        "classes": slabs["class"][rows].astype(np.int64),
        "slab_rows": rows,
        "range_rows": np.full(len(rows), NO_RANGE, np.int64),
    }


def _range_columns(walk: Walk, class_bytes: Integers, classes: Integers) -> dict[str, Records]:
    """One block each, live or not.  A Large block has its class's size, one between closed pages that of the
    request; of a Big one all up to the range's end counts."""
    window, ranges = walk.window, walk.ranges
    colour = ranges.records["colour_bytes"].astype(np.int64)
    sizes = ranges.open_ends(window) - ranges.records["slack_bytes"] - colour
    is_large = (classes >= 0) & (classes < len(class_bytes))
    known = class_bytes[np.where(is_large, classes, 0)]
    sizes = np.where(is_large, np.minimum(known, sizes), sizes)
    rows = np.flatnonzero(sizes > 0)
    return {
        "starts": (window.address_of(ranges.granule) + colour.astype(np.uint64))[rows],
        "block_bytes": sizes[rows],
        "counts": np.ones(len(rows), np.int64),
        "classes": np.where(is_large, classes, NONE)[rows],
        "slab_rows": np.full(len(rows), NO_SLAB, np.int64),
        "range_rows": rows,
    }


def _place_of_granule(window: Window, places: Places) -> Numbers:
    found = np.zeros(window.granule_count + 1, np.int32)  # the last row is for words outside the window
    first = window.granule_of(places.starts)
    last = window.granule_of(places.starts + places.extents - np.uint64(1))
    is_place = places.extents > 0
    for row in np.flatnonzero(is_place & (last - first > 3)).tolist():  # long ranges
        found[max(0, int(first[row])) : max(0, min(int(last[row]) + 1, window.granule_count))] = row
    for step in range(4):
        rows = np.flatnonzero(is_place & (last - first <= 3) & (first + step <= last))
        at = first[rows] + step
        inside = (at >= 0) & (at < window.granule_count)
        found[at[inside]] = rows[inside]
    return found


# ---- states ----------------------------------------------------------------------------------------


def _mark_slabs(found: SlabBlocks, census: Census) -> None:
    place_of_slab = np.zeros(len(found.walk.superslabs.slabs), np.int64)
    of_slabs = np.flatnonzero(found.places.slab_rows != NO_SLAB)
    place_of_slab[found.places.slab_rows[of_slabs]] = of_slabs

    def visit(_item: ClassCensus, rows: Integers, local: Addresses, remote: Addresses) -> None:
        for start in range(0, len(rows), SLABS_AT_ONCE):
            part = slice(start, start + SLABS_AT_ONCE)
            _mark_batch(found, place_of_slab[rows[part]], local[part], remote[part])

    census.count_slabs(visit)


def _mark_batch(found: SlabBlocks, rows: Integers, local: Addresses, remote: Addresses) -> None:
    """The states of the blocks of some slabs: [slab, word]."""
    first = found.places.first_blocks[rows]
    counts = found.places.first_blocks[rows + 1] - first
    for words, state in ((local, State.FREE), (remote, State.REMOTE)):
        slab, word = np.nonzero(words)
        row, bit = np.nonzero(bits_of(words[slab, word].reshape(-1, 1)))
        slab, index = slab[row], word[row] * BITS_PER_WORD + bit
        inside = index < counts[slab]
        found.states[first[slab[inside]] + index[inside]] = state


def _mark_ranges(found: SlabBlocks, classes: Integers) -> None:
    """Ranges without a live block."""
    of_ranges = np.flatnonzero(found.places.range_rows != NO_RANGE)
    is_free = classes[found.places.range_rows[of_ranges]] < 0
    found.states[found.places.first_blocks[of_ranges[is_free]]] = State.FREE
