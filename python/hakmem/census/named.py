"""The figures of heaps that the program has made or named, of one census."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hakmem.census.census import Census
from hakmem.census.heap_figures import NamedHeapFigures
from hakmem.layout.memory import Integers
from hakmem.layout.named_heaps import SUMS


def named_heap_figures(census: Census) -> list[NamedHeapFigures]:
    """The most live bytes first."""
    named, heaps = census.reading.named, census.reading.heaps
    records, live_bytes = named.records, named_live_bytes(census)
    threads = dict(zip(heaps["owner"]["number"].tolist(), heaps["thread_id"].tolist(), strict=True))
    found = []
    for row, record in enumerate(records):
        heap = NamedHeapFigures(
            number=int(named.numbers[row]),
            name=named.names[row],
            tag=int(record["tag"]),
            kind="thread",
            thread_id=threads.get(int(named.thread_numbers[row]), 0),
            live_bytes=int(live_bytes[row]),
            serial=int(named.serials[row]),
        )
        if not named.is_of_thread[row]:
            given, *freed = (int(record[name]) for name in SUMS)
            heap = replace(
                heap,
                kind="cut off" if named.is_cut_off[row] else "program",
                thread_id=0,
                live_blocks=max(0, given - sum(freed)),
                peak_bytes=int(record["peak_bytes"]),
                limit_bytes=int(record["limit_bytes"]) or None,
                refusals=int(record["refusals"]),
                allocated_blocks=given,
                threads=int(named.users[row]),
            )
        found.append(heap)
    return sorted(found, key=lambda heap: (-heap.live_bytes, heap.number))


def named_live_bytes(census: Census) -> Integers:
    named, heaps = census.reading.named, census.reading.heaps
    records = named.records
    in_slabs = records["owner"]["bytes_out"].astype(np.int64)
    if census.reading.walk is not None:
        in_slabs = census.named_slab_bytes
    out = dict(zip(heaps["owner"]["number"].tolist(), heaps["owner"]["bytes_out"].tolist(), strict=True))
    of_threads = np.array([out.get(number, 0) for number in named.thread_numbers.tolist()], np.int64)
    found = np.where(named.is_of_thread, of_threads, in_slabs + records["range_bytes"].astype(np.int64))
    return np.maximum(found, 0)
