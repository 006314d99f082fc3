"""Whether the first bytes of blocks are resident: of a few thousand blocks, wherever they are."""

from __future__ import annotations

import numpy as np

from hakmem.layout.memory import Addresses, Flags, Integers
from hakmem.target.pages import PAGE_BYTES, PRESENT, is_within, open_pagemap, read_entries
from hakmem.target.target import Target


def resident_counts(target: Target, starts: Addresses, wanted: Integers) -> Integers:
    """How many of the wanted bytes at each address can be read: up to the first page that is not resident."""
    first = starts // np.uint64(PAGE_BYTES)
    last = (starts + wanted.astype(np.uint64) - np.uint64(1)) // np.uint64(PAGE_BYTES)
    present = is_present(target, np.concatenate([first, last]))
    has_first, has_last = present[: len(first)], present[len(first) :]
    to_border = ((first + np.uint64(1)) * np.uint64(PAGE_BYTES) - starts).astype(np.int64)
    found = np.where(has_last, wanted, np.minimum(wanted, to_border))
    return np.where(has_first & (wanted > 0), found, 0)


def is_present(target: Target, pages: Addresses) -> Flags:
    """Whether each page, given by its number, is present: the kernel is asked one by one; of a core, whether
    the page was dumped."""
    if target.core is not None:
        return is_within(target.core.dumped, pages * np.uint64(PAGE_BYTES))
    assert target.process is not None
    numbers = pages.tolist()
    with open_pagemap(target.process) as file:
        known = {one: bool(read_entries(file, one * PAGE_BYTES, 1)[0] & PRESENT) for one in set(numbers)}
    return np.array([known[page] for page in numbers], bool)
