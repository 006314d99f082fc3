"""glibc's heap in a process or a core: `hakmem-walk`, a program beside the library, walks it from outside.

Chunks are a chain, too long for Python: the program counts them, and on demand lists them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.base.sizes import counted
from hakmem.base.validity import built
from hakmem.target.access import refused
from hakmem.target.library import find_program
from hakmem.target.process import Process
from hakmem.target.target import Target

WALKER = "hakmem-walk"
HEADER_BYTES = 8  # of a chunk
MEAN_ROUNDING_BYTES = 7.5  # its size is a multiple of 16
BROKEN = 3  # its exit status: the heap was walked
CAUSES = dict.fromkeys(("size", "prev_size"), "wrote beyond that block")
NO_RIGHT = re.compile(r"\bE(PERM|ACCES)\b")


@dataclass(frozen=True)
class Resident:
    """Resident bytes of an arena, by what lies there."""

    live: int = 0
    free_pinned: int = 0  # of free chunks, on pages that hold something else, too
    free_whole: int = 0  # whole pages in free chunks: malloc_trim(0) returns these
    top: int = 0
    cached: int = 0  # in thread caches and fastbins
    headers: int = 0  # the arena's own records
    unused_tail: int = 0  # of a heap, beyond its last chunk

    @property
    def bytes(self) -> int:
        return sum(getattr(self, item.name) for item in fields(self))


@dataclass(frozen=True)
class Region:
    """Addresses of an arena's chunks."""

    begin: int
    end: int
    mapped_end: int


@dataclass(frozen=True)
class Arena:
    """Bytes of chunks count with their headers; live ones without those that are cached."""

    address: int
    is_main: bool
    threads: int  # attached to it now
    system_bytes: int
    live_bytes: int
    live_chunks: int
    free_bytes: int
    free_chunks: int
    top_bytes: int
    tcache_bytes: int
    tcache_chunks: int
    fastbin_bytes: int
    fastbin_chunks: int
    foreign_bytes: int
    unknown_bytes: int
    resident: Resident
    heaps: list[Region]


@dataclass(frozen=True)
class Mmapped:
    """A chunk with a mapping of its own."""

    address: int
    bytes: int
    resident: int


@dataclass(frozen=True)
class Damage:
    """Where the heap is broken: a chunk, and the one before it, beyond which was probably written."""

    chunk: int
    what: str
    detail: str
    before: dict[str, object] | None = None


@dataclass(frozen=True)
class GlibcHeap:
    libc: str | None
    layout: dict[str, int | bool]
    arenas: list[Arena]
    mmapped_chunks: int
    mmapped_bytes: int
    mmapped_resident: int
    mmapped: list[Mmapped]  # the largest
    sizes: list[list[int]]  # bytes of chunks; how many are live, cached, free
    explained_share: float
    broken: list[Damage] = field(default_factory=list)

    def sum(self, name: str) -> int:
        return sum(getattr(arena, name) for arena in self.arenas)

    def resident(self, name: str) -> int:
        return sum(getattr(arena.resident, name) for arena in self.arenas)

    @property
    def live_blocks(self) -> dict[int, int]:
        """How many blocks of each usable size live, without those that have mappings of their own."""
        return {size - HEADER_BYTES: live for size, live, _, _ in self.sizes if live}

    @property
    def damage_text(self) -> str:
        """The first place where the heap is broken, and the likely cause."""
        worst = self.broken[0]
        before = worst.before
        beside = f", after the {before['state']} block of {before['bytes']:,} bytes" if before else ""
        at = f" at {before['address']:#x}" if before else ""
        more = f" And {counted(len(self.broken) - 1, 'more place')}." if self.broken[1:] else ""
        cause = CAUSES.get(worst.what, "wrote into the chunk after it had freed it, or freed it twice")
        return (
            f"The heap is broken at chunk {worst.chunk:#x}{beside}{at}: {worst.detail}. Probably the program "
            f"{cause}; glibc may abort when it gets there.{more}"
        )


def walk(target: Target, blocks: int | None = None) -> GlibcHeap:
    """`blocks`: a descriptor that gets all blocks as pairs of words."""
    if target.core is not None:
        return walk_of(target.core.path.absolute(), blocks)
    process = target.process
    if process is None:
        return walk_of(target.pid, blocks)
    return walk_of(process.memory_id, blocks, process.is_stopped)


def walk_of(place: int | Path, blocks: int | None = None, is_stopped: bool = False) -> GlibcHeap:
    words = [str(find_program(WALKER)), str(place)]
    if blocks is not None:
        words += ["--stopped" if is_stopped else "--blocks", f"/proc/self/fd/{blocks}"]
    keep = () if blocks is None else (blocks,)
    step = subprocess.run(words, capture_output=True, text=True, check=False, pass_fds=keep)
    if step.returncode not in (0, BROKEN):
        raise walk_error(place, step.returncode, step.stderr)
    return built(GlibcHeap, json.loads(step.stdout))


def walk_error(place: int | Path, status: int, said: str) -> HakmemError:
    sentence = said.strip().removeprefix(f"{WALKER}: ") or f"{WALKER} ended with status {status}"
    if isinstance(place, int):
        if NO_RIGHT.search(sentence):
            return refused(place)
        try:
            if not Process(place).has_memory:
                return ProcessGoneError(f"process {place} ended while it was being read")
        except ProcessGoneError as error:
            return error
    return HakmemError(sentence)


@contextmanager
def block_file() -> Iterator[int]:
    """Memory that another process can write to as to a file."""
    file = os.memfd_create("hakmem-blocks")
    try:
        yield file
    finally:
        os.close(file)
