"""From a core: hakmem's last report of a guarded block, with the functions of its stacks.

The process could not name them: the dynamic linker knows only what programs export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hakmem.layout.schema import Schema
from hakmem.profile.labels import Labels
from hakmem.profile.model import Frame, Profile, Sample
from hakmem.profile.names import Sources, ignore, mappings_of, name_addresses
from hakmem.target.target import Target

RECORD = "guard_report"
FAULTS = ("read", "write", "access")  # their stacks begin at an instruction, all others at a return address


@dataclass(frozen=True)
class GuardStack:
    """The act of one thread; frames with names, inlined calls first."""

    what: str
    thread_id: int
    frames: list[Frame]


@dataclass(frozen=True)
class GuardReport:
    """One misuse of a guarded block."""

    kind: str
    what: str
    address: int
    block: int
    block_bytes: int
    is_freed: bool
    stacks: list[GuardStack] = field(default_factory=list)

    @property
    def place(self) -> str:
        """As in the report itself."""
        distance, side = self.address - self.block, "into"
        if self.address < self.block:
            distance, side = -distance, "before"
        elif self.address >= self.block + self.block_bytes:
            distance, side = distance - self.block_bytes, "after"
        return f"{distance} bytes {side} the block of {self.block_bytes} bytes at {self.block:#x}"


def last_report(
    target: Target, moved: Sequence[Path] = (), complain: Callable[[str], None] = ignore
) -> GuardReport | None:
    """None if there was none, or the library is older."""
    schema = target.schema
    if not schema.has(RECORD, "slot", "address", "what", "stack"):
        return None
    row = target.memory.array(schema.root(RECORD), schema.dtype(RECORD), 1)[0]
    if not int(row["slot"]):
        return None
    slot = target.memory.array(int(row["slot"]), schema.dtype("guard_slot"), 1)[0]
    what = target.memory.text(int(row["what"]))
    address, block, size = int(row["address"]), int(slot["block"]), int(slot["size"])
    is_inside = block <= address < block + size
    is_closing = int(slot["phase"]) == schema.constant("guard_closing")
    # Found when it was freed: then it lived when it was overwritten.
    is_found = is_closing and what not in FAULTS and not is_inside
    is_freed = int(slot["phase"]) == schema.constant("guard_freed") or (is_closing and not is_found)
    parts = [(what, row["stack"]), ("allocated", slot["allocated"])]
    parts += [("freed", slot["freed"])] if is_freed else []
    is_call = what not in FAULTS and not is_found
    call = f"{'double' if address == block else 'invalid'} {what}"
    kind = call if is_call else _kind(address, block, is_freed, is_inside)
    return GuardReport(
        kind=kind,
        what=what,
        address=address,
        block=block,
        block_bytes=size,
        is_freed=is_freed,
        stacks=_named(target, parts, Sources(moved=tuple(moved), complain=complain)),
    )


def _kind(address: int, block: int, is_freed: bool, is_inside: bool) -> str:
    """The kind of an access, by its address."""
    if is_freed:
        return "use-after-free"
    if address < block:
        return "heap-buffer-underflow"
    return "use-after-free (and used again)" if is_inside else "heap-buffer-overflow"


def _named(target: Target, parts: Sequence[tuple[str, np.void]], sources: Sources) -> list[GuardStack]:
    stacks = [_calls(target.schema, what, stack) for what, stack in parts]
    samples = [Sample(calls, 0, 0, 0, 0.0, 0.0) for calls in stacks]
    profile = Profile(mappings=mappings_of(target.maps(), target.file_of), samples=samples)
    name_addresses(profile, sources)
    labels = Labels(profile)
    return [
        GuardStack(what, int(stack["thread"]), list(labels.frames(calls)))
        for (what, stack), calls in zip(parts, stacks, strict=True)
    ]


def _calls(schema: Schema, what: str, stack: np.void) -> tuple[int, ...]:
    """Addresses inside the calls; a damaged core may claim any number of frames."""
    frames = stack["frames"].tolist()
    frames = frames[: min(int(stack["frame_count"]), schema.records["call_stack"].fields["frames"].count)]
    is_exact = what in FAULTS
    return tuple(at if is_exact and number == 0 else at - 1 for number, at in enumerate(frames) if at)
