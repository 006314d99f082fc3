"""How much glibc's live chunks would take on hakmem: by its size classes, and whole pages of slabs."""

from __future__ import annotations

from hakmem.target.glibc import GlibcHeap

PAGE_BYTES = 4096
HEADER_BYTES, MEAN_ROUNDING_BYTES = 8, 7.5
QUANTUM, STEPS, FINE_BYTES = 16, 4, 128  # classes: multiples of 16 to 128, then four in each doubling
LARGE_BYTES = 64 << 10  # pages of larger blocks are their own
METADATA_SHARE, BASE_BYTES = 0.015, 1 << 20
ERROR_SHARE = 0.1  # measured


def class_bytes_of(size: int) -> int:
    """The size class that serves a request."""
    if size <= FINE_BYTES:
        return max(QUANTUM, -(-size // QUANTUM) * QUANTUM)
    step = 1 << ((size - 1).bit_length() - 1 - (STEPS.bit_length() - 1))
    return -(-size // step) * step


def on_hakmem_bytes(heap: GlibcHeap) -> int:
    """Resident bytes, about."""
    by_class: dict[int, int] = {}
    whole = 0
    for chunk_bytes, live, _, _ in heap.sizes:
        request = max(1, int(chunk_bytes - HEADER_BYTES - MEAN_ROUNDING_BYTES))
        if request > LARGE_BYTES:
            whole += live * -(-request // PAGE_BYTES) * PAGE_BYTES
        else:
            size = class_bytes_of(request)
            by_class[size] = by_class.get(size, 0) + live * size
    whole += sum(-(-held // PAGE_BYTES) * PAGE_BYTES for held in by_class.values())
    touched = heap.resident("live") / max(heap.sum("live_bytes"), 1)
    whole = int(whole * min(1.0, touched)) + heap.mmapped_resident
    return int(whole * (1 + METADATA_SHARE)) + BASE_BYTES
