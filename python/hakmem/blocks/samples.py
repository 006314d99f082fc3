"""Which blocks the samples of a heap profile are, and where a sampled block was allocated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hakmem.blocks.block_map import NO_RANGE, NONE, BlockMap, State
from hakmem.layout.memory import Addresses, Integers
from hakmem.profile.labels import Labels, frame_text
from hakmem.profile.live import is_known, read_profile
from hakmem.profile.names import Sources, ignore, name_addresses
from hakmem.target.target import Target

MS_PER_S = 1000


@dataclass(frozen=True)
class Asked:
    """How a block was allocated; known if it is a sample."""

    call_site: list[str] = field(repr=False)  # the program's functions, innermost first
    requested_bytes: int
    age_seconds: float
    thread_id: int
    is_complete: bool  # the stack reaches the thread's start


def blocks_of(block_map: BlockMap, places: Addresses) -> Integers:
    """The block of each sample, NONE if there is none any more.

    The sampler knows a block by its address; those that are ranges, by the granule that they begin in, as
    realloc may move a Big block there."""
    blocks, _ = block_map.find(places)
    offsets = places - np.uint64(block_map.base)
    granules = offsets // np.uint64(block_map.window.granule_bytes)
    rows = block_map.place_of_granule[
        np.minimum(granules, np.uint64(len(block_map.place_of_granule) - 1)).astype(np.int64)
    ]
    is_range = block_map.places.range_rows[rows] != NO_RANGE
    return np.where((blocks == NONE) & is_range, block_map.places.first_blocks[rows], blocks)


def sources_of(
    target: Target, moved: Sequence[Path] = (), complain: Callable[[str], None] = ignore
) -> Sources:
    """Where the names of its functions come from; `moved`: files of a core's program."""
    if target.process is not None:
        return Sources.of_process(target.process, complain=complain)
    return Sources(moved=tuple(moved), complain=complain)


def asked_for(block_map: BlockMap, block: int, moved: Sequence[Path] = ()) -> Asked | None:
    """How a live block was allocated; None if no profile has sampled it."""
    target = block_map.reading.target
    if not is_known(target.schema) or block_map.states[block] != State.LIVE:
        return None
    profile = read_profile(target, with_counts=False)
    rows = np.flatnonzero(blocks_of(block_map, np.array(profile.blocks, np.uint64)) == block)
    if not len(rows):
        return None
    one = profile.samples[int(rows[0])]
    profile = replace(profile, samples=[one], allocated=[])
    name_addresses(profile, sources_of(target, moved))
    labels = Labels(profile)
    frames = labels.site(one.stack, len(labels.frames(one.stack)))
    return Asked(
        call_site=[frame_text(frame) for frame in frames],
        requested_bytes=one.requested_bytes,
        age_seconds=(one.age_ms or 0) / MS_PER_S,
        thread_id=one.thread_id,
        is_complete=one.is_complete,
    )
