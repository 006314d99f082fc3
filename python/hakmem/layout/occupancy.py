"""Which bytes of a slab's pages belong to free blocks, from its bitmaps and without a loop over blocks.

    slab       [ block 0 | block 1 | block 2 | … | capacity - 1 | tail ]
    bitmap       0         1         1             0                       1: free
    pages      |        p0        |       p1         | …

Law: bytes of free blocks below an address = set bits below it * block_bytes + the part of the block that
the address splits.  So a page's share is the difference between its two edges; it is also exact for blocks
that span pages."""

from __future__ import annotations

from functools import cache

import numpy as np

from hakmem.layout.memory import Bytes, Flags, Integers, Records, Words

ONE = np.uint64(1)
BITS_PER_WORD = 64


def count_bits(words: Words) -> Records:
    """Per word, how many bits are set; numpy 1, which Debian 12 has, does not know."""
    if hasattr(np, "bitwise_count"):
        counts: Records = np.bitwise_count(words)
        return counts
    quarters = np.ascontiguousarray(words).view(np.uint16).reshape(*words.shape, 4)
    found: Records = _set_bits()[quarters].sum(axis=-1, dtype=np.uint8)
    return found


@cache
def _set_bits() -> Bytes:
    """The set bits of each 16-bit number."""
    numbers = np.arange(1 << 16, dtype=np.uint32)
    bits = (numbers[:, None] >> np.arange(16, dtype=np.uint32)) & 1
    counts: Bytes = bits.sum(axis=1, dtype=np.uint8)
    return counts


def bits_before(words: Words, positions: Integers) -> Integers:
    """Per slab (row) and position (column): the number of set bits below the position."""
    slab_count, word_count = words.shape
    whole = np.zeros((slab_count, word_count + 1), np.int64)
    np.cumsum(count_bits(words), axis=1, dtype=np.int64, out=whole[:, 1:])
    word, bit = np.divmod(positions, BITS_PER_WORD)
    masks = (ONE << bit.astype(np.uint64)) - ONE
    cut = words[:, np.minimum(word, word_count - 1)] & np.where(word < word_count, masks, np.uint64(0))
    before: Integers = whole[:, word] + count_bits(cut)
    return before


def bit_at(words: Words, positions: Integers) -> Integers:
    """Per slab and position: 1 if the bit is set, 0 otherwise and beyond the last word."""
    word, bit = np.divmod(positions, BITS_PER_WORD)
    inside = word < words.shape[1]
    chosen = words[:, np.where(inside, word, 0)] >> bit.astype(np.uint64)
    found: Integers = ((chosen & ONE) * inside).astype(np.int64)
    return found


def set_bytes_by_page(words: Words, block_bytes: int, page_count: int, page_bytes: int) -> Integers:
    """Per slab and page: bytes of the page that lie in blocks whose bit is set."""
    edges = np.arange(page_count + 1, dtype=np.int64) * page_bytes
    position, into_block = np.divmod(edges, block_bytes)
    below = bits_before(words, position) * block_bytes + bit_at(words, position) * into_block
    return np.diff(below, axis=1)


def clip_to_capacity(words: Words, capacity: int) -> Words:
    """Clears the bits beyond the last block, which a slab under construction may have."""
    first_bits = np.arange(words.shape[1]) * BITS_PER_WORD
    valid = np.clip(capacity - first_bits, 0, BITS_PER_WORD)
    masks = np.array([(1 << int(bits)) - 1 for bits in valid], np.uint64)
    return words & masks


def bits_of(words: Words) -> Flags:
    """The bits as booleans: [slab, bit]."""
    octets = np.ascontiguousarray(words.astype("<u8")).view(np.uint8).reshape(len(words), words.shape[1] * 8)
    return np.unpackbits(octets, axis=1, bitorder="little").astype(bool)
