"""How much RSS the blocks of glibc's malloc would take on hakmem.

Chunks in the order of their addresses stand for the order of requests. So each class's blocks, those that
live and those that have been freed, are laid out on slabs: a page stays while one of its blocks lives."""

from __future__ import annotations

import mmap
import os

import numpy as np

from hakmem.base.errors import UnreadableError
from hakmem.layout.memory import PAGE_BYTES, Flags, Integers, Memory, Records
from hakmem.target.glibc import HEADER_BYTES, GlibcHeap

STATE_BITS, LIVE, CACHED = 3, 0, 2  # as the walker writes them; beyond CACHED there is no block
STEP_BYTES = 16

# hakmem's geometry: src/map/size_class.h, cache/fitted.h.
SLAB_BYTES = 64 << 10
STEPPED = [base * part // 4 for base in 2 ** np.arange(7, 15) for part in (5, 6, 7, 8)]
CLASSES = np.array([8, *range(STEP_BYTES, 129, STEP_BYTES), *STEPPED, 37376, 43648, 52352, 65408])
FITTED_MAX_BYTES, FITTED_COUNT, FITTED_SHARE = 8 << 10, 4, 0.9
# The most that may stay free while the process sleeps: src/reclaim/allowance.c.
BUDGET_BYTES, LIVE_DIVISOR, NEARLY_ALL = 256 << 20, 2, 64
# Records: 14 KiB of each SuperSlab of 2 MiB, and bitmaps. The library's own pages.
RECORDS_SHARE, BASE_BYTES = 0.012, 768 << 10

SAMPLES, NEIGHBOURS = 1 << 16, 32
ACCURACY_SHARE = 0.1  # asserted by tests/anyprocess/test_on_hakmem.py


def chunk_words(file: int) -> Records:
    """Pairs from the walker: a block's address, its usable bytes and state."""
    if not os.fstat(file).st_size:
        return np.empty((0, 2), np.uint64)
    with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as data:
        return np.frombuffer(data, np.uint64).reshape(-1, 2).copy()


def on_hakmem_bytes(
    heap: GlibcHeap, words: Records, memory: Memory, risen_bytes: int | None
) -> tuple[int, int]:
    """RSS of the blocks when free memory has gone back by age, and while the process sleeps before that:
    then all pages stay that were in use at the peak, `risen_bytes` above RSS, up to hakmem's budget. None: it
    has a thread that gives them back."""
    starts, coded = words.view(np.int64).T
    usable, states = coded >> STATE_BITS, coded & ((1 << STATE_BITS) - 1)
    has_own_mapping = ((starts - STEP_BYTES) | (usable + STEP_BYTES)) % PAGE_BYTES == 0
    kept = np.flatnonzero((states <= CACHED) & ~has_own_mapping)
    usable, live = usable[kept], states[kept] == LIVE
    requests = requests_of(starts[kept], usable, live, memory)
    pages, slabs = laid_out(requests, usable + HEADER_BYTES, live)
    large = requests[live & (requests > CLASSES[-1])]
    live_bytes = heap.sum("live_bytes")
    touched = min(1.0, heap.resident("live") / max(live_bytes, 1))
    # glibc's header makes a page resident of a block that the program has not touched.
    headers = (1 - touched) * len(large) * PAGE_BYTES
    least = most = (pages + large.sum()) * touched - headers + heap.mmapped_resident
    live_bytes += heap.mmapped_resident
    if risen_bytes is not None and live_bytes * NEARLY_ALL > heap.sum("free_bytes") + risen_bytes:
        free_bytes = slabs - pages + heap.resident("top") + risen_bytes
        most += min(free_bytes, BUDGET_BYTES + live_bytes / LIVE_DIVISOR)
    return int(least * (1 + RECORDS_SHARE)) + BASE_BYTES, int(most * (1 + RECORDS_SHARE)) + BASE_BYTES


def requests_of(starts: Integers, usable: Integers, live: Flags, memory: Memory) -> Integers:
    """The most that was requested. glibc's steps are of 16 bytes: the upper half was if the block's last word
    is in use, in as many blocks as in a sample of this size. A small multiple of 16 may be glibc's."""
    sample = np.flatnonzero(live)[:: len(live) // SAMPLES + 1]
    bins = np.minimum(usable // STEP_BYTES, SLAB_BYTES // STEP_BYTES)
    ends = (starts + usable)[sample] - HEADER_BYTES
    try:
        last = memory.records(ends.astype(np.uint64), np.dtype("<u8"))
    except UnreadableError:  # the heap has become smaller
        return usable
    is_used = (last % STEP_BYTES != 0) | (last > SLAB_BYTES)
    counts, used = (np.bincount(bins[sample], some, SLAB_BYTES) for some in (None, is_used))
    share = (used / np.maximum(1, counts))[bins]
    return np.where(np.arange(len(bins)) % STEP_BYTES < share * STEP_BYTES, usable, usable - HEADER_BYTES)


def with_fitted(requests: Integers) -> Integers:
    """The classes, and those that hakmem makes where one size has most of a class's requests."""
    counts = np.bincount(-(-requests // STEP_BYTES), minlength=FITTED_MAX_BYTES // STEP_BYTES)
    sizes = np.arange(len(counts)) * STEP_BYTES
    rows = np.searchsorted(CLASSES, sizes)
    is_worth = (sizes <= CLASSES[rows] * FITTED_SHARE) & (counts * 2 > np.bincount(rows, counts)[rows])
    gains = counts * sizes * is_worth
    most = np.argsort(gains)[-FITTED_COUNT:]
    return np.union1d(CLASSES, sizes[most][gains[most] > 0])


def laid_out(requests: Integers, chunks: Integers, live: Flags) -> tuple[int, int]:
    """Bytes of the pages with live blocks, and with all blocks that were in use before."""
    classes = with_fitted(requests[live & (requests <= FITTED_MAX_BYTES)])
    rows = rows_of_holes(np.searchsorted(classes, requests), classes, chunks, live)
    counts, sums = (np.bincount(rows[live], some, len(classes) + 1) for some in (None, chunks[live]))
    weights = np.where(live, 1, chunks / np.maximum(1, sums / np.maximum(1, counts))[rows])  # blocks
    slabs = chunks[rows < 0].sum()
    order = np.argsort(rows, kind="stable")
    order = order[(rows[order] >= 0) & (rows[order] < len(classes))]
    rows, weights, live = rows[order], weights[order], live[order]
    sizes = classes[rows]
    before = np.cumsum(weights) - weights
    places = (before - before[np.searchsorted(rows, rows)]).astype(np.int64)  # among its class's blocks
    slab_bytes = SLAB_BYTES * (1 + (sizes > SLAB_BYTES // 8) + 2 * (sizes > SLAB_BYTES // 4))
    slab, index = np.divmod(places, slab_bytes // sizes)
    begins = ((rows << 48) + slab * slab_bytes + index * sizes)[live]
    firsts, lasts = begins // PAGE_BYTES, (begins + sizes[live] - 1) // PAGE_BYTES
    firsts[1:] = np.maximum(firsts[1:], lasts[:-1] + 1)
    pages = int(np.maximum(0, lasts - firsts + 1).sum()) * PAGE_BYTES
    return pages, max(pages, int(slabs + (weights * sizes).sum()))


def rows_of_holes(rows: Integers, classes: Integers, chunks: Integers, live: Flags) -> Integers:
    """Rows with those of holes, -1 where unknown: the class of a neighbour that fits, drawn by the square
    of its size, as a hole is likelier to be one freed block than many small ones."""
    holes, near = np.flatnonzero(~live), rows[live]
    at, rows[holes], best = np.cumsum(live)[holes], -1, np.zeros(len(holes))
    sizes, draw = np.append(classes, 1 << 60), np.random.default_rng(0)  # larger blocks have no slabs
    for beside in range(-NEIGHBOURS, NEIGHBOURS) if len(near) else ():
        row = near.take(at + beside, mode="clip")
        weights = (sizes[row] <= chunks[holes]) * sizes[row] ** 2 / draw.random(len(holes))
        is_best = weights > best
        best[is_best], rows[holes[is_best]] = weights[is_best], row[is_best]
    return rows
