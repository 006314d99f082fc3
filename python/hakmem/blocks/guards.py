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
from hakmem.profile.names import Sources, mappings_of, name_addresses
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


def last_report(target: Target, moved: Sequence[Path], complain: Callable[[str], None]) -> GuardReport | None:
    schema = target.schema
    row = schema.structure(target.memory, RECORD)
    if not int(row["guard"]):
        return None
    guard = target.memory.array(int(row["guard"]), schema.dtype("guard"), 1)[0]
    kind, what = (target.memory.text(int(row[name])) for name in ("kind", "what"))
    is_freed = bool(row["is_freed"])
    parts = [(what, row["stack"]), ("allocated", guard["allocated"])]
    parts += [("freed", guard["freed"])] if is_freed else []
    return GuardReport(
        kind=kind if what in FAULTS else f"{kind} {what}",
        what=what,
        address=int(row["address"]),
        block=int(row["block"]),
        block_bytes=int(row["block_bytes"]),
        is_freed=is_freed,
        stacks=_named(target, parts, Sources(moved=tuple(moved), complain=complain)),
    )


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
