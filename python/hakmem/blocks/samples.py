"""Which blocks the samples of a heap profile are, and where a sampled block was allocated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hakmem.blocks.block_map import BlockMap, State
from hakmem.profile.labels import Labels, frame_text
from hakmem.profile.live import read_profile
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


def sources_of(target: Target, moved: Sequence[Path], complain: Callable[[str], None] = ignore) -> Sources:
    """Where the names of its functions come from; `moved`: files of a core's program."""
    if target.process is not None:
        return Sources.of_process(target.process, complain=complain)
    return Sources(moved=tuple(moved), complain=complain)


def asked_for(block_map: BlockMap, block: int, moved: Sequence[Path]) -> Asked | None:
    """How a live block was allocated; None if no profile has sampled it."""
    target = block_map.target
    if target.malloc != "hakmem" or block_map.states[block] != State.LIVE:
        return None
    profile = read_profile(target, with_counts=False)
    rows = np.flatnonzero(block_map.find_sampled(np.array(profile.blocks, np.uint64)) == block)
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
