"""Everything about one address: `hakmem what PID 0xADDR`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hakmem.base.progress import Progress, no_progress
from hakmem.blocks.block_map import (
    NONE,
    BlockMap,
    Details,
    HeapName,
    NamedHeap,
    State,
    read_block_map,
)
from hakmem.blocks.content import Content, Contents
from hakmem.blocks.files import Files
from hakmem.blocks.referrers import Referrer, path_to_root, referrers_of, with_contents
from hakmem.blocks.residence import is_present
from hakmem.blocks.samples import Asked, asked_for
from hakmem.blocks.whose import as_json
from hakmem.target.pages import PAGE_BYTES
from hakmem.target.switch import STOPPED
from hakmem.target.target import Target, making_sense

SCANS_MAX, PATIENCE_S = 10, 10.0  # for a path, while the program runs
UNREACHABLE = "nothing that the program can reach leads here"
MAY_MOVE = (
    "in {} scans of a program that runs, and may have moved its words meanwhile; to be certain stop it while "
    "this command looks (kill -STOP {})"
)


@dataclass
class OneBlock:
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

    def note(self, details: Details) -> None:
        for name, value in vars(details).items():
            setattr(self, name, value)

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
            elsewhere = files.describe(address)
            if elsewhere != "not mapped":
                elsewhere = f"not {target.malloc}'s: {elsewhere}"
            return OneBlock(target.pid, address, block_map.place_of(address, elsewhere))
        block = int(blocks[0])
        one = np.array([block])
        found = OneBlock(target.pid, address, "in a block")
        found.start, found.block_bytes = int(block_map.starts_of(one)[0]), int(block_map.sizes_of(one)[0])
        found.state = State(int(block_map.states[block]))
        page = np.array([found.start // PAGE_BYTES], np.uint64)
        found.is_resident = bool(is_present(target, page)[0])
        found.note(block_map.details_of(block))
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
