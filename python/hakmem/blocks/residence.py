"""Whether the first bytes of blocks are resident: of a few thousand blocks, wherever they are."""

from __future__ import annotations

import numpy as np

from hakmem.layout.memory import Addresses, Flags, Integers
from hakmem.target.pages import PAGE_BYTES, PRESENT, open_pagemap, read_entries
from hakmem.target.target import Target


class Residence:
    """Asks the kernel page by page; of a core, whether the page was dumped."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def counts(self, starts: Addresses, wanted: Integers) -> Integers:
        """How many of the wanted bytes at each address can be read: up to the first page that is not
        resident."""
        first = starts // np.uint64(PAGE_BYTES)
        last = (starts + wanted.astype(np.uint64) - np.uint64(1)) // np.uint64(PAGE_BYTES)
        is_present = self.is_present(np.concatenate([first, last]))
        has_first, has_last = is_present[: len(first)], is_present[len(first) :]
        to_border = ((first + np.uint64(1)) * np.uint64(PAGE_BYTES) - starts).astype(np.int64)
        found = np.where(has_last, wanted, np.minimum(wanted, to_border))
        return np.where(has_first & (wanted > 0), found, 0)

    def is_present(self, pages: Addresses) -> Flags:
        """Whether each page, given by its number, is present."""
        if self._target.core is not None:
            bounds = np.array(self._target.core.dumped or [(0, 0)], np.uint64)
            addresses = pages * np.uint64(PAGE_BYTES)
            row = np.maximum(np.searchsorted(bounds[:, 0], addresses, "right") - 1, 0)
            is_dumped: Flags = (addresses >= bounds[row, 0]) & (addresses < bounds[row, 1])
            return is_dumped
        return self._of_process(pages)

    def _of_process(self, pages: Addresses) -> Flags:
        process = self._target.process
        assert process is not None
        with open_pagemap(process) as file:
            known: dict[int, bool] = {}
            for page in pages.tolist():
                if page not in known:
                    known[page] = bool(read_entries(file, page * PAGE_BYTES, 1)[0] & PRESENT)
            return np.array([known[page] for page in pages.tolist()], bool)
