"""hakmem's heaps as numpy arrays, read from a target.

    owners ──▶ heaps           one record per heap: magazines, owner with its counters

A running target is tolerated: lists are bounded, torn records are skipped.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from hakmem.base.errors import HakmemError
from hakmem.layout.memory import Integers, Memory, Records, Words
from hakmem.layout.schema import Schema
from hakmem.layout.structures import POINTER

FIRST_HEAP_NUMBER = 1
MAGAZINE_ARMED = np.uint64(1 << 63)
HEAPS_MAX = 1 << 20  # a longer list is damaged


def read_heaps(memory: Memory, schema: Schema, pid: int = 0) -> Records:
    """All heaps, including those of ended threads.  `pid` becomes the thread number of the first heap: the
    library does not ask the kernel for it while there is one thread."""
    schema.need("heap", "magazines", "owner", "thread_id")
    schema.need("owner", "next_of_all", "counters", "number", "state")
    heaps = memory.records(heap_addresses(memory, schema), schema.dtype("heap"))
    owner = heaps["owner"]
    has_thread = np.isin(owner["state"], [schema.constant("owner_running"), schema.constant("owner_dormant")])
    is_unknown = (owner["number"] == FIRST_HEAP_NUMBER) & (heaps["thread_id"] == 0)
    heaps["thread_id"][is_unknown & has_thread] = pid
    return heaps


def heap_addresses(memory: Memory, schema: Schema) -> Words:
    """Where the heaps are, in the order of `read_heaps`."""
    link = schema.offset("owner", "next_of_all")
    owners = np.array(linked(memory, schema.root("owners"), link), np.uint64)
    return owners - np.uint64(schema.offset("heap", "owner"))


def heap_column(memory: Memory, schema: Schema, addresses: Words, *path: str) -> Records:
    """One field of each of these heaps, or of a record in it: a whole heap is a thousand times as much."""
    dtype, offset = schema.dtype("heap"), 0
    for name in path:
        dtype, place = dict[str, Any](dtype.fields or {})[name][:2]
        offset += place
    return memory.records(addresses + np.uint64(offset), dtype)


def linked(memory: Memory, root: int, link: int) -> list[int]:
    """The addresses of all records of a list: only the links are read, one by one.  Records join in front and
    never leave, so the next walk ends where this one began.  `link`: where a record has the next one's
    address."""
    lists = _lists_found.setdefault(memory, {})
    known = lists.get(root, [0])
    found: list[int] = []
    record = memory.word(root)
    while record not in (0, known[0]) and len(found) < HEAPS_MAX:
        found.append(record)
        record = memory.word(record + link)
    if record:
        if record != known[0]:
            raise HakmemError("the target's list of heaps does not end: its memory is damaged")
        found += known
    if found:
        lists[root] = found
    return found


# Results of the last walks, newest first, by the address of the list's beginning.
_lists_found: WeakKeyDictionary[Memory, dict[int, list[int]]] = WeakKeyDictionary()


def magazine_bases(heaps: Records) -> Words:
    """Where the magazines begin: [heap, class].  Their highest bit says that a profile is on."""
    found: Words = heaps["magazines"]["tagged_base"] & ~MAGAZINE_ARMED
    return found


def magazine_counts(heaps: Records, class_count: int = 0) -> Integers:
    """Blocks in each magazine: [heap, class].  A magazine that is being moved counts as empty, and so do
    classes without magazines, up to `class_count`."""
    magazines = heaps["magazines"]
    base, top, end = (
        place.astype(np.int64) for place in (magazine_bases(heaps), magazines["top"], magazines["end"])
    )
    counts = np.where((base <= top) & (top <= end), (top - base) // POINTER.itemsize, 0)
    return np.pad(counts, ((0, 0), (0, max(class_count - counts.shape[1], 0))))


def magazine_blocks(memory: Memory, heaps: Records) -> tuple[Words, Integers]:
    """The addresses of all blocks in magazines, and their classes."""
    counts = magazine_counts(heaps)
    heap, number = np.nonzero(counts)
    sizes = counts[heap, number]
    bases = magazine_bases(heaps)[heap, number]
    blocks = memory.gather(bases, (sizes * POINTER.itemsize).astype(np.uint64)).view(np.uint64)
    return blocks, np.repeat(number, sizes)


def range_magazine_bytes(memory: Memory, schema: Schema, heaps: Records) -> int:
    """Bytes of freed Large blocks that threads keep."""
    places = heaps["range_magazines"]
    kept = memory.records(places[places != 0], schema.dtype("range_magazines"))["bytes"]
    return int(kept.sum())


def read_class_counters(memory: Memory, schema: Schema, heaps: Records) -> dict[str, Integers]:
    """Each class counter, summed over all heaps: name → [class]."""
    addresses = heaps["class_counters"][heaps["class_counters"] != 0]
    dtype = schema.dtype("class_counters")
    table = np.dtype((dtype, (schema.constant("class_count"),)))
    records = memory.gather(addresses, np.full(len(addresses), table.itemsize, np.uint64)).view(dtype)
    by_heap = records.reshape(len(addresses), schema.constant("class_count"))
    sums = {name: by_heap[name].sum(axis=0, dtype=np.int64) for name in dtype.names or ()}
    passes = heaps["magazines"]["passes"].sum(axis=0, dtype=np.int64)
    sums["profiled_blocks"][: len(passes)] -= passes  # counted, but not handed out yet
    return sums


def read_quarantines(memory: Memory, schema: Schema, heaps: Records) -> tuple[Words, Integers]:
    """Hardened mode: the addresses of freed blocks in quarantine, and the rows of the heaps that hold them.
    Empty in the others."""
    rows = np.flatnonzero(heaps["quarantine"])
    if not len(rows):
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    rings = memory.records(heaps["quarantine"][rows], schema.dtype("quarantine"))["blocks"]
    row, place = np.nonzero(rings)
    # Two blocks that change places may be read as one block twice.
    blocks, first = np.unique(rings[row, place].astype(np.uint64), return_index=True)
    return blocks, rows[row[first]]
