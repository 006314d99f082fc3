"""Unreachable blocks: `hakmem leaks`.

    scan, wait, scan …    of a running process, until one scan suspects all blocks that those before it did:
                          unreachable and unchanged in each of them
    scan, stop            of a process that is stopped for a look at the suspected blocks alone (stopped.py)
    one scan              of a core

A pointer that moves while it is looked for, as a compacting collector moves many, makes a block look
unreachable; each scan takes most of those away.

A block may be held by nothing but a register.  Those of a running process are only partly visible: for each
unseen register one group of unreachable blocks, the largest first, is not "definitely" lost but "perhaps".
A group is a block that no other unreachable block points to, and the blocks reached from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hakmem.base.progress import Progress, no_progress
from hakmem.blocks.block_map import NONE, BlockMap
from hakmem.blocks.content import Content, Contents
from hakmem.blocks.files import Files
from hakmem.blocks.marking import groups
from hakmem.blocks.scanning import Scan, Scanning
from hakmem.blocks.stopped import look_stopped
from hakmem.blocks.what import ContentRow, SizeClass, describe
from hakmem.blocks.whose import Whose
from hakmem.layout.memory import Addresses, Flags, Integers
from hakmem.layout.structures import rows_in
from hakmem.profile.live import live_births
from hakmem.target.target import Target, making_sense

DRAWS = 2000
ADDRESSES_MAX = 10
SCANS_MAX = 6


@dataclass(frozen=True)
class Sum:
    blocks: int
    bytes: int
    groups: int = 0

    @classmethod
    def of(cls, block_map: BlockMap, blocks: Integers, group_count: int = 0) -> Sum:
        return cls(len(blocks), int(block_map.sizes_of(blocks).sum()), group_count)


@dataclass
class Leaks(Whose):
    is_frozen: bool
    scans: list[dict[str, float]]  # seconds, processor_seconds, read_bytes, unreachable
    live: Sum
    definite: Sum
    perhaps: Sum
    freed_only: Sum  # of both, those that freed blocks still point to
    interior: Sum  # reachable, but nothing points at their beginning
    threads: int
    unseen_registers: int
    contents: list[ContentRow]  # of the definite ones
    classes: list[SizeClass]
    addresses: list[str]  # of the largest groups' first blocks
    is_whole: bool  # False: memory was missing, or no two scans agreed; then nothing is definite
    freeze_tells: bool = field(repr=False)  # blocks are only "perhaps" lost because the process went on
    notes: list[str] = field(default_factory=list)
    # Which of the samples in question (Options.samples) are lost.
    lost_samples: Flags = field(default_factory=lambda: np.zeros(0, bool), repr=False)
    sample_contents: dict[int, Content] = field(default_factory=dict, repr=False)  # of those asked about


@dataclass
class Options:
    wait_s: float = 2.0
    freeze: bool = False
    with_swapped: bool = False
    examples: bool = False
    progress: Progress = no_progress
    sleep: Callable[[float], None] = time.sleep
    samples: Sequence[int] = ()  # of a profile: where the sampler has found their blocks
    births_ns: Sequence[int] = ()  # of these
    described: Sequence[int] = ()  # rows of these whose contents are wanted


def find_leaks(target: Target, options: Options) -> Leaks:
    """The blocks of a target that nothing reaches."""
    with making_sense(target):
        return found_leaks(target, options, look(target, options))


@dataclass
class Suspects:
    """Blocks that were unreachable and unchanged in each scan so far: sorted by address."""

    starts: Addresses
    sizes: Integers
    hashes: Addresses

    @classmethod
    def of(cls, scan: Scan) -> Suspects:
        blocks = scan.unreachable
        return cls(scan.map.starts_of(blocks), scan.map.sizes_of(blocks), scan.hashes)

    def __len__(self) -> int:
        return len(self.starts)

    def rows_in(self, other: Suspects) -> Integers:
        """The rows of these that are in the other ones, too."""
        rows, is_there = rows_in(other.starts, self.starts)
        own = np.flatnonzero(is_there)
        rows = rows[own]
        is_same = (other.sizes[rows] == self.sizes[own]) & (other.hashes[rows] == self.hashes[own])
        return np.asarray(own[is_same])

    def chosen(self, rows: Integers) -> Suspects:
        return Suspects(self.starts[rows], self.sizes[rows], self.hashes[rows])


@dataclass
class Verdict:
    """The result of several scans together."""

    last: Scan
    lost: Integers  # blocks of the last scan's map
    log: list[dict[str, float]]
    unseen_registers: int
    swapped_bytes: int
    missing_bytes: int
    is_settled: bool  # the last scan took nothing away
    is_frozen: bool = False


def look(target: Target, options: Options) -> Verdict:
    """One scan of a core; a scan and a stop; else scans until one agrees with all before it."""
    if target.process is None:
        return judged([Scanning(target, True, options.progress).run])
    first = Scanning(target, options.with_swapped, options.progress).run
    if options.freeze:
        suspecting = first()
        is_frozen = len(suspecting.unreachable) > 0
        last = look_stopped(target, suspecting, options.with_swapped) if is_frozen else suspecting
        return replace(judged([lambda: last]), is_frozen=is_frozen)

    def again() -> Scan:
        options.sleep(options.wait_s)
        target.check_same()
        return Scanning(target, options.with_swapped).run()

    return judged([first, *[again] * (SCANS_MAX - 1)])


def judged(steps: Sequence[Callable[[], Scan]]) -> Verdict:
    """Scans until nothing is suspected, or a scan suspects all that the ones before it did."""
    suspects: Suspects | None = None
    log: list[dict[str, float]] = []
    unseen = swapped = missing = 0
    for step in steps:
        scan = step()
        found = Suspects.of(scan)
        rows = np.arange(len(found)) if suspects is None else found.rows_in(suspects)
        is_settled = len(steps) == 1 or (suspects is not None and len(rows) == len(suspects)) or not len(rows)
        suspects = found.chosen(rows)
        log.append(
            {
                "seconds": round(scan.seconds, 3),
                "processor_seconds": round(scan.processor_seconds, 3),
                "read_bytes": scan.read_bytes,
                "unreachable": len(scan.unreachable),
            }
        )
        unseen = max(unseen, sum(thread.unseen_registers for thread in scan.threads))
        swapped, missing = max(swapped, scan.swapped_bytes), max(missing, scan.missing_bytes)
        if is_settled:
            break
    return Verdict(scan, scan.unreachable[rows], log, unseen, swapped, missing, is_settled)


def found_leaks(target: Target, options: Options, verdict: Verdict) -> Leaks:
    last, lost = verdict.last, verdict.lost
    block_map, marking = last.map, last.marking
    head_of = groups(last.edges, lost)
    unseen = verdict.unseen_registers
    is_whole = not (verdict.swapped_bytes or verdict.missing_bytes) and verdict.is_settled
    is_perhaps, heads = set_aside(block_map, lost, head_of, unseen if is_whole else len(lost))
    definite, perhaps = lost[~is_perhaps], lost[is_perhaps]
    shown = definite if len(definite) else perhaps
    contents = Contents(block_map, Files(target))
    rows, classes = describe(block_map, contents, shown, DRAWS, options.examples)
    sampled = block_map.find_sampled(np.array(options.samples, np.uint64))
    stayed = stayed_samples(target, options) & (sampled != NONE)
    described = [row for row in options.described if stayed[row]]
    return Leaks(
        **Whose.head_of(target),
        is_frozen=verdict.is_frozen,
        scans=verdict.log,
        live=Sum.of(block_map, block_map.live_blocks()),
        definite=Sum.of(block_map, definite, len(np.flatnonzero(~is_perhaps[heads]))),
        perhaps=Sum.of(block_map, perhaps, len(np.flatnonzero(is_perhaps[heads]))),
        freed_only=Sum.of(block_map, lost[marking.is_from_freed[lost]]),
        interior=Sum.of(block_map, marking.interior()),
        threads=len(last.threads),
        unseen_registers=unseen,
        contents=rows,
        classes=classes,
        addresses=list(map(hex, block_map.starts_of(lost[heads[:ADDRESSES_MAX]]).tolist())),
        is_whole=is_whole,
        freeze_tells=target.process is not None and not options.freeze and not verdict.swapped_bytes,
        notes=notes_of(verdict),
        lost_samples=np.isin(sampled, lost) & stayed,
        sample_contents=dict(zip(described, contents.of(sampled[described]), strict=True)),
    )


def stayed_samples(target: Target, options: Options) -> Flags:
    """Which samples have not been freed since they were read.  Those that have were reachable; the next
    block at that address, with the same content, would seem lost in its place."""
    if target.process is None or not options.births_ns:
        return np.ones(len(options.samples), bool)
    live = live_births(target)
    places = zip(options.samples, options.births_ns, strict=True)
    return np.fromiter((place in live for place in places), bool, len(options.samples))


def set_aside(block_map: BlockMap, lost: Integers, head_of: Integers, count: int) -> tuple[Flags, Integers]:
    """Which lost blocks are in one of the `count` largest groups; and all groups' heads, largest first."""
    sizes = np.bincount(head_of, block_map.sizes_of(lost), len(lost))
    heads = np.flatnonzero(head_of == np.arange(len(lost)))
    heads = heads[np.argsort(-sizes[heads], kind="stable")]
    is_chosen = np.zeros(len(lost), bool)
    is_chosen[heads[:count]] = True
    return is_chosen[head_of] if len(lost) else is_chosen, heads


def notes_of(verdict: Verdict) -> list[str]:
    swapped, missing = verdict.swapped_bytes, verdict.missing_bytes
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
    if not verdict.is_settled:
        notes.append(
            "the last scan reached blocks that earlier ones did not: the process changes faster "
            "than it can be scanned, so nothing is definitely lost; --freeze stops it"
        )
    return notes
