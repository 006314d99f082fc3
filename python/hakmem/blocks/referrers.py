"""The pointers to a block: words anywhere in the program's memory, by one conservative scan; and a way back
to a root, by several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hakmem.base.progress import Progress, no_progress
from hakmem.blocks.block_map import BlockMap, State
from hakmem.blocks.content import Content, Contents
from hakmem.blocks.files import Files
from hakmem.blocks.marking import distinct
from hakmem.blocks.pointers import Found, batches, each, pointers_in
from hakmem.blocks.python_references import PythonReferences
from hakmem.blocks.regions import Kind, Region, Regions, Runs
from hakmem.blocks.scanning import Scanning
from hakmem.blocks.threads import Thread, kernel_words
from hakmem.blocks.whose import as_json
from hakmem.layout.memory import Integers

SHOWN_MAX = 32
STEPS_MAX = 24  # of a path
FOLLOWED_MAX = 256  # of the words of one batch: of what everything points at a few suffice


@dataclass(frozen=True)
class Referrer:
    """One word that points into the block."""

    address: int  # of the word; of a register the thread's number
    kind: str  # "block", or of which kind a root is
    where: str
    points_at_offset: int  # the offset in the block that it points into
    block_start: int | None = field(default=None, repr=False)  # of the block that the word is in
    block_bytes: int | None = None
    is_live: bool = True  # that block
    content: Content | None = None  # of it
    variable: str = ""  # of a Python module, whose value the word is

    @property
    def is_root(self) -> bool:
        return self.block_start is None

    def to_json(self) -> Any:  # noqa: ANN401 - JSON
        return as_json(self) | {
            "block": None if self.block_start is None else f"{self.block_start:#x}",
            "content": self.content and {"kind": self.content.kind.value, "name": self.content.name},
        }


class Finder:
    def __init__(self, block_map: BlockMap, files: Files) -> None:
        self._map = block_map
        self._files = files
        self._threads = Scanning(block_map.target).threads()
        self._regions = Regions(block_map.target, self._threads, block_map)

    def hits(self, wanted: Integers, progress: Progress = no_progress) -> list[Found]:
        """Roots first."""
        is_wanted = np.zeros(self._map.block_count, bool)
        is_wanted[wanted] = True

        def work(batch: Runs) -> tuple[int, Found]:
            pointers = pointers_in(batch, self._map)
            return batch.bytes, pointers.chosen(np.flatnonzero(is_wanted[pointers.blocks]))

        regions = [*self._regions.roots, *self._regions.heap]
        whole = max(sum(region.end - region.start for region in regions), 1)
        found, done = [], 0
        for count, hits in each(work, batches(self._regions.runs(regions))):
            done += count
            progress(min(1.0, done / whole))
            if len(hits.blocks):
                found.append(hits)
        return found

    def described(self, hits: Found) -> list[Referrer]:
        """Each as a referrer; words inside the block itself are left out."""
        region, addresses = hits.batch.region, hits.batch.addresses_of(hits.places)
        holders = self._map.find(addresses)[0].tolist() if region.kind is Kind.HEAP else None
        found = []
        for row, (address, into) in enumerate(zip(addresses.tolist(), hits.into.tolist(), strict=True)):
            if holders is None:
                found.append(Referrer(address, region.kind.value, self._root_text(region, address), into))
            elif holders[row] >= 0 and holders[row] != int(hits.blocks[row]):
                found.append(self._block(address, into, holders[row]))
        return found

    def _block(self, address: int, into: int, holder: int) -> Referrer:
        one = np.array([holder])
        start, size = int(self._map.starts_of(one)[0]), int(self._map.sizes_of(one)[0])
        is_live = self._map.states[holder] == State.LIVE
        where = f"block {start:#x} + {address - start}" + ("" if is_live else ", which is freed")
        return Referrer(address, "block", where, into, start, size, bool(is_live))

    def _root_text(self, region: Region, address: int) -> str:
        if region.kind is not Kind.STACK:
            return self._files.describe(address)
        thread = region.thread
        return f"stack of thread {thread.thread_id}" if thread else "stack of a thread"

    def of_registers(self, wanted: int) -> list[Referrer]:
        """Referrers in registers and in words that the kernel keeps."""
        process = self._map.target.process
        none = Thread(0, None, tuple(kernel_words(process) if process else ()), 0)
        found = []
        for thread in (*self._threads, none):
            blocks, into = self._map.find(np.array(thread.registers, np.uint64))
            for row in np.flatnonzero(blocks == wanted)[:1].tolist():
                kind, where = "kernel", "epoll data or a timer"
                if thread.thread_id:
                    kind, where = "register", f"a register of thread {thread.thread_id}"
                found.append(Referrer(thread.thread_id, kind, where, int(into[row])))
        return found


def referrers_of(
    block_map: BlockMap, files: Files, block: int, progress: Progress
) -> tuple[list[Referrer], int]:
    """The first ones, roots first, and how many there are."""
    finder = Finder(block_map, files)
    found = finder.of_registers(block)
    count = len(found)
    for hits in finder.hits(np.array([block]), progress):
        described = finder.described(hits)
        count += len(described)
        found += described[: max(0, SHOWN_MAX - len(found))]
    return found, count


def with_contents(block_map: BlockMap, files: Files, found: Sequence[Referrer]) -> list[Referrer]:
    """The referrers, with the content of the blocks that the words are in."""
    held = [one for one in found if one.block_start is not None]
    blocks, _ = block_map.find(np.array([one.block_start for one in held], np.uint64))
    contents = iter(Contents(block_map, files).of(blocks) if held else [])
    return [one if one.block_start is None else replace(one, content=next(contents)) for one in found]


def path_to_root(block_map: BlockMap, files: Files, block: int) -> list[Referrer]:
    """From the block, step by step, to a root, or to a variable of a Python module: a shortest way.  Empty if
    the steps did not suffice."""
    finder = Finder(block_map, files)
    python = PythonReferences(block_map.target.memory, files)
    found = _path(finder, block_map, block, python) if python.is_known else []
    return found or _path(finder, block_map, block, None)


def _path(finder: Finder, block_map: BlockMap, block: int, python: PythonReferences | None) -> list[Referrer]:
    """`python`: only by what is a reference there."""
    # Block → a word in it, and the block that this points into.
    found_by: dict[int, tuple[Referrer, int]] = {}
    wave = np.array([block])
    for _ in range(STEPS_MAX):
        registers = [(one, int(b)) for b in wave.tolist() for one in finder.of_registers(int(b))]
        steps = [*registers, *_steps(finder, wave, is_whole=python is not None)]
        if python is not None:
            steps = _references(steps, block_map, python)
        fresh: dict[int, tuple[Referrer, int]] = {}
        for one, target in steps:
            if one.is_root or one.variable:
                return _way(found_by, one, target, block)
            if not one.is_live or one.block_start is None:
                continue
            holder = int(block_map.find(np.array([one.block_start], np.uint64))[0][0])
            if holder not in found_by and holder != block:
                fresh.setdefault(holder, (one, target))
        if not fresh:
            return []
        found_by |= fresh
        wave = distinct(np.array(list(fresh), np.int64))
    return []


def _references(
    steps: list[tuple[Referrer, int]], block_map: BlockMap, python: PythonReferences
) -> list[tuple[Referrer, int]]:
    """The referrers that are references; variables of modules first."""
    found = []
    for one, target in steps:
        start = int(block_map.starts_of(np.array([target]))[0])
        if python.is_reference(start, one.points_at_offset, one.where, one.block_start):
            table = one.block_start if one.is_live else None
            variable = python.variable(one.address, table) if table else ""
            found.append((replace(one, variable=variable), target))
    return sorted(found, key=lambda step: not step[0].variable)


def _steps(finder: Finder, wave: Integers, *, is_whole: bool = False) -> list[tuple[Referrer, int]]:
    """All referrers of a wave; roots first, and then no others unless `is_whole`."""
    found = []
    for hits in finder.hits(wave):
        for row in range(min(len(hits.blocks), FOLLOWED_MAX)):
            one = hits.chosen(slice(row, row + 1))
            found += [(referrer, int(hits.blocks[row])) for referrer in finder.described(one)]
        if found and found[-1][0].is_root and not is_whole:
            break
    return found


def _way(
    found_by: dict[int, tuple[Referrer, int]], root: Referrer, target: int, block: int
) -> list[Referrer]:
    """From the block up to the root."""
    way = [root]
    while target != block:
        step, target = found_by[target]
        way.append(step)
    return way[::-1]
