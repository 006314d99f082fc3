"""Everything about one address: `hakmem what PID 0xADDR`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hakmem.base.errors import UnreadableError
from hakmem.base.progress import Progress, no_progress
from hakmem.blocks.block_map import NO_RANGE, NONE, BlockMap, State, read_block_map
from hakmem.blocks.content import Content, Contents
from hakmem.blocks.files import Files
from hakmem.blocks.referrers import Referrer, path_to_root, referrers_of, with_contents
from hakmem.blocks.residence import is_present
from hakmem.blocks.samples import Asked, asked_for
from hakmem.blocks.whose import as_json
from hakmem.census.snapshot import STATES
from hakmem.layout.named_heaps import named_range_numbers
from hakmem.target.pages import PAGE_BYTES
from hakmem.target.switch import STOPPED
from hakmem.target.target import Target, making_sense

SCANS_MAX, PATIENCE_S = 10, 10.0  # for a path, while the program runs
UNREACHABLE = "nothing that the program can reach leads here"
MAY_MOVE = (
    "in {} scans of a program that runs, and may have moved its words meanwhile; to be certain stop it while "
    "this command looks (kill -STOP {})"
)
RANGE_STATES = {
    "range_dirty": "free range, not purged",
    "range_busy": "free range, being purged",
    "range_clean": "free range, purged",
    "range_unmapped": "free range, unmapped",
    "range_occupied": "free range, in which something else is mapped",
    "range_live": "free range, kept whole for reuse",
}
STATE_TEXTS = {
    State.LIVE: "live",
    State.FREE: "free, in its slab",
    State.REMOTE: "free: another thread freed it, its slab's heap has not collected it yet",
    State.MAGAZINE: "cached: freed, in a magazine",
    State.QUARANTINE: "freed, in a quarantine",
}


@dataclass
class HeapName:
    """A heap, and the thread that allocates with it."""

    number: int
    thread_id: int
    thread_name: str
    state: str
    heap_name: str = ""  # that the program has given it


@dataclass
class NamedHeap:
    """A heap that the program has made."""

    number: int
    name: str
    tag: int


@dataclass
class OneBlock:
    """The findings about one address."""

    pid: int
    address: int
    place: str  # of the address, if not in a block
    start: int | None = None
    block_bytes: int | None = None
    size_class: int | None = None
    tier: str = ""
    state: State | None = None
    state_text: str = ""
    is_resident: bool | None = None  # its first page
    owner: HeapName | None = None  # of its slab
    heap: NamedHeap | None = None  # that it is in
    cached_by: HeapName | None = None
    content: Content | None = None
    asked: Asked | None = field(default=None, repr=False)  # known only of samples of a profile
    referrers: list[Referrer] = field(default_factory=list)
    referrer_count: int = 0
    path: list[Referrer] | None = None  # from the block to a root; None: not asked for
    notes: list[str] = field(default_factory=list)

    def to_json(self, examples: bool = False) -> Any:  # noqa: ANN401 - JSON
        content = self.content
        return as_json(self) | {
            "start": None if self.start is None else f"{self.start:#x}",
            "offset": None if self.start is None else self.address - self.start,
            "state": None if self.state is None else self.state.name.lower(),
            "content": content
            and {
                "kind": content.kind.value,
                "name": content.name,
                "text": content.text if examples else "",
                "pointer_share": round(content.pointer_share, 4),
                "entropy_bits": None if content.entropy_bits is None else round(content.entropy_bits, 2),
            },
            "call_site": self.asked.call_site if self.asked else None,
            "sample": as_json(self.asked) if self.asked else None,
            "referrers": [one.to_json() for one in self.referrers],
            "path": None if self.path is None else [one.to_json() for one in self.path],
        }


def what_is(
    target: Target,
    address: int,
    with_path: bool = False,
    progress: Progress = no_progress,
    moved: Sequence[Path] = (),
) -> OneBlock:
    """Examines an address and the pointers to it.  `moved`: where files of a core's program are."""
    with making_sense(target):
        block_map = read_block_map(target)
        files = Files(target)
        blocks, _ = block_map.find(np.array([address], np.uint64))
        if blocks[0] == NONE:
            return OneBlock(target.pid, address, place_of(block_map, files, address))
        block = int(blocks[0])
        one = np.array([block])
        found = OneBlock(target.pid, address, "in a block")
        found.start, found.block_bytes = int(block_map.starts_of(one)[0]), int(block_map.sizes_of(one)[0])
        number = int(block_map.classes_of(one)[0])
        found.size_class = number if number >= 0 else None
        found.tier = block_map.reading.tier(number) if number >= 0 else "big"
        found.state = State(int(block_map.states[block]))
        found.state_text = state_text(block_map, block, found.state)
        page = np.array([found.start // PAGE_BYTES], np.uint64)
        found.is_resident = bool(is_present(target, page)[0])
        found.heap = named_heap_of(block_map, block)
        found.owner = None if found.heap else owner_of(block_map, block)
        found.cached_by = cached_by(block_map, found.start, found.state)
        if found.state is State.FREE and not found.is_resident:
            found.state_text += "; its page is not resident (purged, or never touched)"
        found.asked = asked_for(block_map, block, moved)
        found.content = Contents(block_map, files).of(one)[0]
        referrers, found.referrer_count = referrers_of(block_map, files, block, progress)
        found.referrers = with_contents(block_map, files, referrers)
        if with_path:
            found.path, scans = _path(target, block_map, files, found)
            if not found.path:
                found.notes.append(MAY_MOVE.format(scans, target.pid) if is_moving(target) else UNREACHABLE)
        return found


def is_moving(target: Target) -> bool:
    return target.process is not None and target.process.state not in STOPPED


def _path(target: Target, block_map: BlockMap, files: Files, found: OneBlock) -> tuple[list[Referrer], int]:
    """The path, and the number of scans: a running program may move words into memory already read."""
    assert found.start is not None
    scans, until_s = 1, time.monotonic() + PATIENCE_S
    while True:
        block = int(block_map.find(np.array([found.start], np.uint64))[0][0])
        if scans > 1 and (block == NONE or block_map.states[block] != State.LIVE):
            return [], scans
        if path := path_to_root(block_map, files, block):
            return with_contents(block_map, files, path), scans
        is_over = scans == SCANS_MAX or time.monotonic() > until_s
        if is_over or found.state is not State.LIVE or not is_moving(target):
            return [], scans
        scans, block_map = scans + 1, read_block_map(target)
        files = Files(target)


# ---- where -----------------------------------------------------------------------------------------


def place_of(block_map: BlockMap, files: Files, address: int) -> str:
    """Describes an address outside all blocks."""
    window = block_map.window
    granule = (address - window.base) // window.granule_bytes
    if not 0 <= granule < window.granule_count:
        text = files.describe(address)
        return text if text == "not mapped" else f"not hakmem's: {text}"
    entry = int(window.chunk_map[granule // window.granules_per_chunk])
    if not entry:
        return "in hakmem's records, or in memory of others in its window"
    if entry & block_map.reading.schema.constant("chunk_is_ranges"):
        return "in a chunk of ranges, in no range's block: before its first byte, or after its last"
    slabs = block_map.walk.superslabs.slabs
    ends = slabs["base"] + (slabs["slot_count"].astype(np.uint64) * np.uint64(window.granule_bytes))
    inside = (slabs["base"] <= np.uint64(address)) & (np.uint64(address) < ends)
    return "in a SuperSlab, " + ("in a slab's tail" if inside.any() else "in an UNUSED slot: no slab")


def state_text(block_map: BlockMap, block: int, state: State) -> str:
    """The state in words; of ranges their own states."""
    row = int(block_map.places_of(np.array([block]))[0])
    range_row = int(block_map.places.range_rows[row])
    if state is not State.FREE or range_row == NO_RANGE:
        return STATE_TEXTS[state]
    walk, constants = block_map.walk, block_map.reading.schema.constants
    kind = int(walk.ranges.records["kind"][range_row])
    return next((text for name, text in RANGE_STATES.items() if constants.get(name) == kind), "free range")


# ---- whose -----------------------------------------------------------------------------------------


def named_heap_of(block_map: BlockMap, block: int) -> NamedHeap | None:
    """The heap that the program has made and that the block's slab or range is of."""
    named, place = block_map.reading.named, block_map.places_of(np.array([block]))[0]
    slab_row, range_row = int(block_map.places.slab_rows[place]), int(block_map.places.range_rows[place])
    walk = block_map.walk
    if slab_row >= 0:
        row = named.rows_of(walk.superslabs.slabs["owner"][[slab_row]].astype(np.uint64))[0]
    else:
        entries = walk.ranges.entries[[range_row]]
        row = named.rows_of_numbers(named_range_numbers(block_map.reading.schema, entries))[0]
    if row < 0:
        return None
    return NamedHeap(int(named.numbers[row]), named.names[row], int(named.records["tag"][row]))


def owner_of(block_map: BlockMap, block: int) -> HeapName | None:
    """The heap that owns the block's slab; of Large and Big blocks, and of samples, there is none."""
    reading, window = block_map.reading, block_map.window
    # Named heaps, that of samples among them, have numbers of their own.
    granule = int(window.granule_of(block_map.starts_of(np.array([block])))[0])
    if int(window.owner_map[granule]) >= reading.schema.constant("map_tag_named"):
        return None
    row = int(block_map.places.slab_rows[block_map.places_of(np.array([block]))[0]])
    if row < 0:
        return None
    owner = int(block_map.walk.superslabs.slabs["owner"][row])
    place = owner + reading.schema.offset("owner", "number")
    try:
        number = int(reading.target.memory.array(place, np.dtype("u4"), 1)[0])
    except UnreadableError:  # a torn record
        return None
    rows = np.flatnonzero(reading.heaps["owner"]["number"] == number)
    return heap_name(block_map, int(rows[0])) if len(rows) else None


def cached_by(block_map: BlockMap, start: int, state: State) -> HeapName | None:
    """The heap in whose magazine or quarantine the block is."""
    held = block_map.caches.get(state)
    if held is None:
        return None
    rows = np.flatnonzero(held.addresses == np.uint64(start))
    return heap_name(block_map, int(held.heap_rows[rows[0]])) if len(rows) else None


def heap_name(block_map: BlockMap, row: int) -> HeapName:
    reading = block_map.reading
    heap, named = reading.heaps[row], reading.named
    number = int(heap["owner"]["number"])
    heap_names = dict(zip(named.thread_numbers.tolist(), named.names, strict=True))
    process, constants = reading.target.process, reading.schema.constants
    names = process.thread_names() if process else {}
    states = {constants[key]: text for key, text in STATES.items() if key in constants}
    thread_id = int(heap["thread_id"])
    return HeapName(
        number=number,
        thread_id=thread_id,
        thread_name=names.get(thread_id, ""),
        state=states.get(int(heap["owner"]["state"]), "unknown"),
        heap_name=heap_names.get(number, ""),
    )
