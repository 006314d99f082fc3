"""The chunk map's records as numpy arrays, read from a target; the heaps are in heaps.py.

    chunk map ──▶ superslabs   slabs in use and their bitmaps
              └─▶ ranges       Large, Big and free ranges

Everything here tolerates a running target: lists are bounded, torn records are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hakmem.base.progress import Progress
from hakmem.layout.memory import PAGE_BYTES, Flags, Integers, Memory, Numbers, Records, Words
from hakmem.layout.schema import Schema

POINTER = np.dtype("u8")
SUPERSLABS_AT_ONCE = 512
RANGE_CHUNKS_AT_ONCE = 4096


def rows_in(known: Numbers, wanted: Numbers) -> tuple[Integers, Flags]:
    """The row of each in `known`, and whether it is there; other rows are arbitrary."""
    if not len(known):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    order = np.argsort(known, kind="stable")  # quick where they are sorted
    rows = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return rows, known[rows] == wanted


def runs_of(chosen: Flags) -> tuple[Integers, Integers]:
    """Runs of set values: where each starts and ends."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    return edges[0::2], edges[1::2]


# ---- the window ------------------------------------------------------------------------------------


def classes_of(schema: Schema, entries: Numbers) -> Integers:
    """In entries of the owner map."""
    mask = schema.constant("map_places_mask")
    return (entries & np.uint32(mask)).astype(np.int64) // (mask & -mask)


class Window:
    """The maps of hakmem's part of the address space."""

    def __init__(self, memory: Memory, schema: Schema) -> None:
        schema.need("window", "base", "granule_count", "owner_map", "chunk_map_end")
        self._memory = memory
        self._record = schema.structure(memory, "window")
        self.base = int(self._record["base"])
        self.granule_bytes = schema.constant("granule_bytes")
        self.chunk_bytes = schema.constant("chunk_bytes")
        self.granule_count = int(self._record["granule_count"])

    @property
    def granules_per_chunk(self) -> int:
        return self.chunk_bytes // self.granule_bytes

    @cached_property
    def owner_map(self) -> Numbers:
        """Per granule a tag and a class; 0 where no block starts.

        Read where chunks have records: terabytes of foreign memory may lie between them."""
        entries = np.zeros(self.granule_count, np.uint32)
        bounds = np.column_stack(runs_of(self.chunk_map != 0)).astype(np.uint64)
        bounds *= np.uint64(self.granules_per_chunk)
        size = np.uint64(entries.itemsize)
        addresses = bounds[:, 0] * size + np.uint64(int(self._record["owner_map"]))
        read = self._memory.gather(addresses, (bounds[:, 1] - bounds[:, 0]) * size).view(np.uint32)
        done = 0
        for start, end in bounds.tolist():
            entries[start:end] = read[done : done + end - start]
            done += end - start
        return entries

    @cached_property
    def chunk_map(self) -> Words:
        """Per chunk: the address of its record, with the bit chunk_is_ranges; 0 where it has none."""
        count = self.granule_count // self.granules_per_chunk
        lowest = int(self._record["chunk_map_end"]) - count * POINTER.itemsize
        return self._memory.array(lowest, POINTER, count)[::-1].copy()

    def note_inside(self, ranges: Ranges) -> None:
        """Chunks without records inside a range are of ranges too, as its first one is."""
        first = ranges.granule // self.granules_per_chunk
        last = (ranges.granule + ranges.records["granules"] - 1) // self.granules_per_chunk
        for low, high in zip(first[last > first + 1].tolist(), last[last > first + 1].tolist(), strict=True):
            inside = self.chunk_map[low + 1 : high]
            inside[inside == 0] = self.chunk_map[low]

    def address_of(self, granules: Numbers) -> Words:
        return granules.astype(np.uint64) * np.uint64(self.granule_bytes) + np.uint64(self.base)

    def slab_classes_of(self, blocks: Words, schema: Schema) -> Integers:
        """The classes of slab blocks, by the owner map; -1 for other addresses."""
        granule = self.granule_of(blocks)
        is_inside = (granule >= 0) & (granule < self.granule_count)
        numbers = classes_of(schema, self.owner_map.take(granule, mode="clip"))
        return np.where(is_inside & (numbers < schema.constant("slab_class_count")), numbers, -1)

    def granule_of(self, addresses: Words) -> Integers:
        """The granules of any addresses: below 0 or at least granule_count outside the window."""
        return (addresses.astype(np.int64) - self.base) // self.granule_bytes


# ---- SuperSlabs ------------------------------------------------------------------------------------


@dataclass
class Superslabs:
    """All SuperSlabs, and the slabs in use inside them: one row each."""

    chunks: Integers
    superslabs: Records  # without their slabs
    active_slots: Integers  # per SuperSlab
    addresses: Words  # of the slabs' records
    slabs: Records

    def bitmaps(self, memory: Memory, schema: Schema, rows: Numbers) -> tuple[Words, Words]:
        """Local and remote bits of slabs of one class: [slab, word].  Bit set: the block is free."""
        return self._words(memory, schema, rows, "local"), self._words(memory, schema, rows, "remote")

    def _words(self, memory: Memory, schema: Schema, rows: Numbers, side: str) -> Words:
        """From the record if they are inline: read at the same moment as its other fields."""
        slabs, inline = self.slabs[rows], f"inline_{side}"
        count = int(slabs["word_count"].max(initial=0))
        offset = np.uint64(schema.offset("slab", inline))
        if (slabs[side] == self.addresses[rows] + offset).all() and count <= slabs[inline].shape[1]:
            return np.asarray(slabs[inline][:, :count])
        size = np.full(len(rows), count * POINTER.itemsize, np.uint64)
        return memory.gather(slabs[side], size).view(np.uint64).reshape(len(rows), count)


def read_superslabs(memory: Memory, schema: Schema, window: Window, progress: Progress) -> Superslabs:
    schema.need("superslab", "slabs")
    schema.need("slab", "class", "capacity", "word_count", "slot_count", "state", "local", "remote")
    entries = window.chunk_map
    is_ranges = np.uint64(schema.constant("chunk_is_ranges"))
    chunks = np.flatnonzero((entries != 0) & (entries & is_ranges == 0))
    dtype = _without_tail(schema.dtype("superslab"))
    bare = [name for name in dtype.names or () if name != "slabs"]
    parts: list[tuple[Records, Integers, Words, Records]] = []
    for start in range(0, len(chunks), SUPERSLABS_AT_ONCE):
        addresses = entries[chunks[start : start + SUPERSLABS_AT_ONCE]]
        records = memory.records(addresses, dtype)
        parts.append((records[bare], *_active(schema, addresses, records)))
        progress(min(1.0, (start + SUPERSLABS_AT_ONCE) / len(chunks)))
    if not parts:
        empty = np.empty(0, dtype)
        parts = [(empty[bare], *_active(schema, np.empty(0, np.uint64), empty))]
    superslabs, active, places, slabs = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Superslabs(chunks, superslabs, active, places, slabs)


def _active(schema: Schema, addresses: Words, superslabs: Records) -> tuple[Integers, Words, Records]:
    """Slots in use per SuperSlab; address and record of each slab in use.

    The records of a slab's second and later slots are stale, so slots are visited in order."""
    slabs = superslabs["slabs"]
    is_first = np.zeros(slabs.shape, bool)
    covered = np.zeros(len(slabs), np.int64)  # slots that the last slab still covers
    active = np.zeros(len(slabs), np.int64)
    for slot in range(slabs.shape[1]):
        column = slabs[:, slot]
        is_start = (covered == 0) & (column["state"] == schema.constant("slot_active"))
        is_start &= (column["word_count"] > 0) & (column["capacity"] > 0)
        is_first[:, slot] = is_start
        covered = np.where(is_start, np.maximum(column["slot_count"], 1), covered)
        active += covered > 0
        covered = np.maximum(covered - 1, 0)
    rows, slots = np.nonzero(is_first)
    size = schema.records["slab"].size_bytes
    first = addresses[rows] + np.uint64(schema.offset("superslab", "slabs"))
    return active, first + slots.astype(np.uint64) * np.uint64(size), slabs[rows, slots]


def _without_tail(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The record up to its last known field: SuperSlabs end in bitmaps that most do not use."""
    fields = dict[str, Any](dtype.fields or {})
    end = max(int(entry[1]) + entry[0].itemsize for entry in fields.values())
    return np.dtype(
        {
            "names": list(fields),
            "formats": [entry[0] for entry in fields.values()],
            "offsets": [entry[1] for entry in fields.values()],
            "itemsize": end,
        }
    )


# ---- ranges ----------------------------------------------------------------------------------------


@dataclass
class Ranges:
    """All ranges, live and free, in the order of their addresses."""

    granule: Integers  # the first one
    records: Records  # of that granule: granules, kind, site …
    entries: Numbers  # of the owner map: 0 for free and cached ones

    def open_ends(self, window: Window) -> Integers:
        """Where the pages that may hold a block end, from each range's start: closed ones follow."""
        closed = self.records["closed_pages"].astype(np.int64) * PAGE_BYTES
        return self.records["granules"].astype(np.int64) * window.granule_bytes - closed


def read_ranges(memory: Memory, schema: Schema, window: Window, progress: Progress) -> Ranges:
    schema.need("range_chunk", "ranges")
    schema.need("range", "granules", "kind")
    entries = window.chunk_map
    is_ranges = np.uint64(schema.constant("chunk_is_ranges"))
    chunks = np.flatnonzero(entries & is_ranges)
    records = _range_records(memory, schema, entries[chunks] & ~is_ranges, progress)
    found = list(_walk(records["granules"].tolist(), chunks.tolist(), window.granules_per_chunk))
    row, granule = np.array(found, np.int64).reshape(-1, 2).T
    ranges = Ranges(granule, records[row], window.owner_map[granule])
    window.note_inside(ranges)
    return ranges


def _range_records(memory: Memory, schema: Schema, addresses: Words, progress: Progress) -> Records:
    """The range records of these chunks, concatenated."""
    dtype = schema.dtype("range_chunk")
    parts = [np.empty(0, schema.dtype("range"))]
    for start in range(0, len(addresses), RANGE_CHUNKS_AT_ONCE):
        chunks = memory.records(addresses[start : start + RANGE_CHUNKS_AT_ONCE], dtype)
        parts.append(chunks["ranges"].reshape(-1))
        progress(min(1.0, (start + RANGE_CHUNKS_AT_ONCE) / len(addresses)))
    return np.concatenate(parts)


def _walk(sizes: list[int], chunks: list[int], per_chunk: int) -> Iterator[tuple[int, int]]:
    """Where ranges start: row of the record, and granule.  Inside a range chunks may have no records."""
    place = 0
    for index, chunk in enumerate(chunks):
        place = max(place, chunk * per_chunk)
        while place < (chunk + 1) * per_chunk:
            row = (index - chunk) * per_chunk + place
            if sizes[row]:
                yield row, place
            place += max(1, sizes[row])
