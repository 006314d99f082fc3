"""Blocks that the program cannot reach any more: `hakmem leaks`.

    scan, wait, scan        of a running process: what both say is unreachable, and has not changed in between
    one scan                of a process that is frozen meanwhile, or of a core

A block may be held by nothing but a register.  Those of a running process are only partly visible, so of
what is unreachable as many groups as registers are unseen, the largest ones, are not "definitely" lost but
"perhaps": a group is a block that no other unreachable block points to, and what can be reached from it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hakmem.base.progress import Progress, no_progress
from hakmem.blocks.block_map import BlockMap
from hakmem.blocks.content import Contents
from hakmem.blocks.files import Files
from hakmem.blocks.freeze import frozen
from hakmem.blocks.marking import groups
from hakmem.blocks.regions import mappings_of
from hakmem.blocks.scanning import Scan, Scanning
from hakmem.blocks.what import ContentRow, SizeClass, describe
from hakmem.census.reading import Integers
from hakmem.target.target import Target, making_sense

DRAWS = 2000
ADDRESSES_MAX = 10


@dataclass(frozen=True)
class Sum:
    """So many blocks."""

    blocks: int
    bytes: int
    groups: int = 0

    @classmethod
    def of(cls, block_map: BlockMap, blocks: Integers, group_count: int = 0) -> Sum:
        return cls(len(blocks), int(block_map.sizes_of(blocks).sum()), group_count)

    def to_json(self) -> dict[str, int]:
        return {"blocks": self.blocks, "bytes": self.bytes, "groups": self.groups}


@dataclass
class Leaks:
    """The answer."""

    pid: int
    command: list[str]
    is_core: bool
    version: str
    is_frozen: bool
    scans: list[dict[str, float]]  # seconds, read_bytes
    live: Sum
    definite: Sum
    perhaps: Sum
    freed_only: Sum  # of both, those that freed blocks still point to
    interior: Sum  # reachable, but nothing points at their beginning
    threads: int
    unseen_registers: int
    contents: list[ContentRow]  # of the definite ones
    classes: list[SizeClass]
    addresses: list[int]  # of the largest groups' first blocks
    is_whole: bool  # False: memory was missing, so nothing is definite
    notes: list[str] = field(default_factory=list)
    # Growth by call site, and survival by age, come from samples of a profile: further sections, by name.
    sections: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        plain = (
            "pid",
            "command",
            "is_core",
            "version",
            "is_frozen",
            "scans",
            "threads",
            "unseen_registers",
            "is_whole",
        )
        sums = ("live", "definite", "perhaps", "freed_only", "interior")
        return (
            {name: getattr(self, name) for name in plain}
            | {name: getattr(self, name).to_json() for name in sums}
            | {
                "contents": [row.to_json() for row in self.contents],
                "classes": [item.to_json() for item in self.classes],
                "addresses": [f"{address:#x}" for address in self.addresses],
                "notes": self.notes,
            }
            | self.sections
        )


@dataclass
class Options:
    """How to look."""

    wait_s: float = 2.0
    freeze: bool = False
    with_swapped: bool = False
    examples: bool = False
    progress: Progress = no_progress
    sleep: Callable[[float], None] = time.sleep


def find_leaks(target: Target, options: Options) -> Leaks:
    """The blocks of a target that nothing reaches."""
    with making_sense(target):
        scans = _scans(target, options)
        found = _leaks(target, options, scans)
    target.check_same()
    return found


def _scans(target: Target, options: Options) -> list[Scan]:
    """The last one is the one that the others must agree with."""
    process = target.process
    if process is None:
        return [Scanning(target, None, True, options.progress).run()]
    if options.freeze:
        with frozen(process) as threads:
            return [Scanning(target, threads, options.with_swapped, options.progress).run()]
    scans = []
    for part in range(2):
        if part:
            options.sleep(options.wait_s)
            target.check_same()
        progress = _half_of(options.progress, part)
        scans.append(Scanning(target, None, options.with_swapped, progress).run())
    return scans


def _half_of(progress: Progress, part: int) -> Progress:
    return lambda done: progress((part + done) / 2)


def agreed(scans: list[Scan]) -> Integers:
    """The rows of the last scan's unreachable blocks that were so, and had the same contents, in each."""
    last = scans[-1]
    starts, sizes = last.starts, last.map.sizes_of(last.unreachable)
    keep = np.ones(len(starts), bool)
    for scan in scans[:-1]:
        before, before_sizes = scan.starts, scan.map.sizes_of(scan.unreachable)
        if not len(before):
            return np.empty(0, np.int64)
        row = np.minimum(np.searchsorted(before, starts), len(before) - 1)
        keep &= (before[row] == starts) & (before_sizes[row] == sizes) & (scan.hashes[row] == last.hashes)
    return np.flatnonzero(keep)


def _leaks(target: Target, options: Options, scans: list[Scan]) -> Leaks:
    last = scans[-1]
    block_map, marking = last.map, last.marking
    lost = last.unreachable[agreed(scans)]
    head_of = groups(last.edges, lost)
    unseen = max(sum(thread.unseen_registers for thread in scan.threads) for scan in scans)
    is_whole = not any(scan.swapped_bytes or scan.missing_bytes for scan in scans)
    is_perhaps, heads = set_aside(block_map, lost, head_of, unseen if is_whole else len(lost))
    definite, perhaps = lost[~is_perhaps], lost[is_perhaps]
    interior = np.flatnonzero(marking.is_live & marking.is_marked & ~marking.is_exact)
    shown = definite if len(definite) else perhaps
    contents = Contents(block_map, Files(target, mappings_of(target)))
    rows, classes = describe(block_map, contents, shown, DRAWS, options.examples)
    return Leaks(
        pid=target.pid,
        command=target.command,
        is_core=target.process is None,
        version=target.schema.version,
        is_frozen=options.freeze and target.process is not None,
        scans=[{"seconds": round(scan.seconds, 3), "read_bytes": scan.read_bytes} for scan in scans],
        live=Sum.of(block_map, block_map.live_blocks()),
        definite=Sum.of(block_map, definite, len(np.flatnonzero(~is_perhaps[heads]))),
        perhaps=Sum.of(block_map, perhaps, len(np.flatnonzero(is_perhaps[heads]))),
        freed_only=Sum.of(block_map, lost[marking.is_from_freed[lost]]),
        interior=Sum.of(block_map, interior),
        threads=len(last.threads),
        unseen_registers=unseen,
        contents=rows,
        classes=classes,
        addresses=block_map.starts_of(lost[heads[:ADDRESSES_MAX]]).tolist(),
        is_whole=is_whole,
        notes=notes_of(scans),
    )


def set_aside(
    block_map: BlockMap, lost: Integers, head_of: Integers, count: int
) -> tuple[np.ndarray, Integers]:
    """Which lost blocks are in one of the `count` largest groups; and all groups' heads, largest first."""
    sizes = np.bincount(head_of, block_map.sizes_of(lost), len(lost))
    heads = np.flatnonzero(head_of == np.arange(len(lost)))
    heads = heads[np.argsort(-sizes[heads], kind="stable")]
    is_chosen = np.zeros(len(lost), bool)
    is_chosen[heads[:count]] = True
    return is_chosen[head_of] if len(lost) else is_chosen, heads


def notes_of(scans: list[Scan]) -> list[str]:
    """What makes the answer uncertain."""
    swapped = max(scan.swapped_bytes for scan in scans)
    missing = max(scan.missing_bytes for scan in scans)
    notes = []
    if swapped:
        notes.append(
            f"{swapped >> 10:,} KiB of the process are swapped out, and pointers there are not seen, so "
            "nothing is definitely lost; --swapped reads them, which makes them resident"
        )
    if missing:
        notes.append(
            f"{missing >> 10:,} KiB of the process's memory are not in the core (see coredump_filter, "
            "MADV_DONTDUMP), and pointers there are not seen, so nothing is definitely lost"
        )
    return notes
