"""Every block of a heap that can be walked: where it begins, how large it is, in which state, and which one
an address is in.

`what` and `leaks` know a heap by this alone. hakmem_blocks.py reads it from hakmem, glibc_blocks.py from
glibc's malloc; another allocator needs one more such file, and a line in `READERS`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from importlib import import_module

import numpy as np

from hakmem.base.progress import Progress, no_progress
from hakmem.layout.memory import Addresses, Bytes, Integers
from hakmem.target.pages import Interval
from hakmem.target.process import Mapping
from hakmem.target.target import Target

NONE, CHUNK = -1, "chunk"  # no block; the tier of blocks without one
READERS = {"hakmem": "hakmem_blocks", "glibc": "glibc_blocks"}  # a target's malloc → the module that reads it


class State(IntEnum):
    LIVE = 0
    FREE = 1  # in its slab; a range without a block
    REMOTE = 2  # freed by another thread, not collected yet
    MAGAZINE = 3
    QUARANTINE = 4


@dataclass
class HeapName:
    number: int
    thread_id: int
    thread_name: str
    state: str
    heap_name: str = ""  # that the program has given it


@dataclass
class NamedHeap:
    number: int
    name: str
    tag: int


@dataclass
class Details:
    """All that the allocator knows of one block."""

    size_class: int | None
    tier: str
    state_text: str
    heap: NamedHeap | None = None  # that it is in
    owner: HeapName | None = None  # of its slab
    cached_by: HeapName | None = None


class BlockMap(ABC):
    """The blocks of one reading, numbered in the order of addresses."""

    target: Target
    class_bytes: Integers  # of each size class
    states: Bytes  # State of each block

    @property
    def block_count(self) -> int:
        return len(self.states)

    def live_blocks(self) -> Integers:
        return np.flatnonzero(self.states == State.LIVE)

    # ---- by address ----

    @abstractmethod
    def candidates(self, words: Addresses) -> Integers:
        """The places of the words that may point into a block: a quick choice, for `find`."""

    @abstractmethod
    def find(self, addresses: Addresses) -> tuple[Integers, Integers]:
        """The number of the block that each address is in, NONE if in none; and how far into it."""

    def find_sampled(self, places: Addresses) -> Integers:
        """The blocks that a profile's samples are, by their addresses."""
        return self.find(places)[0]

    @abstractmethod
    def place_of(self, address: int, elsewhere: str) -> str:
        """Describes an address outside all blocks; `elsewhere` does if it is outside the heap."""

    # ---- by number ----

    @abstractmethod
    def starts_of(self, blocks: Integers) -> Addresses:
        """The first addresses of these blocks."""

    @abstractmethod
    def sizes_of(self, blocks: Integers) -> Integers:
        """In bytes."""

    @abstractmethod
    def classes_of(self, blocks: Integers) -> Integers:
        """Their size classes; NONE: too large for one."""

    @abstractmethod
    def details_of(self, block: int) -> Details:
        """For a reader."""

    # ---- memory ----

    @abstractmethod
    def memory(self) -> list[Interval]:
        """The addresses of all blocks, in the order in which they are best read for pointers."""

    @abstractmethod
    def own(self, mappings: Sequence[Mapping]) -> list[Interval]:
        """The same, and the allocator's records: words there are not the program's. By address."""


def read_block_map(target: Target, progress: Progress = no_progress) -> BlockMap:
    found: BlockMap = import_module(f"hakmem.blocks.{READERS[target.malloc]}").read(target, progress)
    return found
