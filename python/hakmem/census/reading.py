"""hakmem's structures in one target, as near to one moment as they can be read: all that residency.py needs
besides the pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hakmem.census.figures import TIERS
from hakmem.layout.occupancy import bits_of
from hakmem.layout.schema import Schema
from hakmem.layout.structures import (
    Ranges,
    Superslabs,
    Window,
    magazine_blocks,
    magazine_counts,
    read_class_counters,
    read_heaps,
    read_outbox_words,
    read_quarantines,
    read_ranges,
    read_superslabs,
)
from hakmem.target.target import Target

Addresses = NDArray[np.uint64]
Integers = NDArray[np.int64]


@dataclass
class Cached:
    """Blocks in magazines, outboxes and quarantines: one row each."""

    addresses: Addresses
    heap_rows: Integers
    in_quarantine: NDArray[np.bool_]


@dataclass
class Reading:
    """hakmem's structures in one process, as near to one moment as they can be read."""

    target: Target
    window: Window
    heaps: NDArray[Any]
    class_bytes: Integers
    class_counters: Mapping[str, Integers]
    superslabs: Superslabs
    ranges: Ranges
    cached: Cached

    @property
    def schema(self) -> Schema:
        return self.target.schema

    def mean_request_bytes(self, number: int) -> float | None:
        """What was asked for per block of a class, on average; None if it is not known."""
        if not {"sampled_requests", "sampled_bytes"} <= self.class_counters.keys():
            return None
        requests = int(self.class_counters["sampled_requests"][number])
        return int(self.class_counters["sampled_bytes"][number]) / requests if requests else None

    def tier(self, number: int) -> str:
        """The tier's name, as in snapshots."""
        if number < self.schema.constant("tiny_class_count"):
            return TIERS[0]
        return TIERS[1 if number < self.schema.constant("slab_class_count") else 2]


def read(target: Target) -> Reading:
    """Reads everything that `measure` needs besides the pages."""
    memory, schema = target.memory, target.schema
    window = Window(memory, schema)
    heaps = read_heaps(memory, schema)
    superslabs = read_superslabs(memory, schema, window)
    count = schema.constant("class_count")
    return Reading(
        target=target,
        window=window,
        heaps=heaps,
        class_bytes=memory.array(schema.root("class_bytes"), np.dtype("u4"), count).astype(np.int64),
        class_counters=read_class_counters(memory, schema, heaps),
        superslabs=superslabs,
        ranges=read_ranges(memory, schema, window),
        cached=read_cached(target, heaps, superslabs),
    )


def read_cached(target: Target, heaps: NDArray[Any], superslabs: Superslabs) -> Cached:
    """The addresses of all blocks in caches, with the heap that holds them."""
    blocks, _ = magazine_blocks(target.memory, heaps)
    addresses = [blocks]
    rows = [np.repeat(np.arange(len(heaps)), magazine_counts(heaps).sum(axis=1))]
    for row in np.flatnonzero(heaps["outbox_count"]):
        words = read_outbox_words(target.memory, target.schema, heaps[row : row + 1])
        waiting = outbox_addresses(words, superslabs)
        addresses.append(waiting)
        rows.append(np.full(len(waiting), row))
    quarantined, holders = read_quarantines(target.memory, target.schema, heaps)
    found = np.concatenate([*addresses, quarantined])
    in_quarantine = np.arange(len(found)) >= len(found) - len(quarantined)
    return Cached(found, np.concatenate([*rows, holders]).astype(np.int64), in_quarantine)


def outbox_addresses(words: NDArray[Any], superslabs: Superslabs) -> Addresses:
    """The blocks that an outbox's words stand for; those of a slab that is gone meanwhile are left out."""
    order = np.argsort(superslabs.addresses)
    place = np.searchsorted(superslabs.addresses[order], words["slab"])
    place = np.minimum(place, max(0, len(order) - 1))
    known = superslabs.addresses[order][place] == words["slab"] if len(order) else np.zeros(len(words), bool)
    slabs, words = superslabs.slabs[order[place[known]]], words[known]
    row, bit = np.nonzero(bits_of(words["bits"].reshape(-1, 1)))
    index = words["word"][row].astype(np.uint64) * np.uint64(64) + bit.astype(np.uint64)
    return slabs["base"][row] + index * slabs["block_bytes"][row].astype(np.uint64)
