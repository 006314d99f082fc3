"""Why is RSS this high?  Lines that add up to RSS, each with what could be done, and a verdict in words.

The process runs on while it is read, so one look may catch it between two states.  A few looks are taken,
and the one during which it changed least counts.  How much it changed is told."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

from hakmem.base.errors import HakmemError
from hakmem.base.sizes import bytes_text
from hakmem.census.limits import LimitFigures, limit_notes
from hakmem.census.lines import Line, all_lines, own_lines
from hakmem.census.look import Look, look_at, look_at_core
from hakmem.census.snapshot import take
from hakmem.census.verdict import verdict
from hakmem.target.process import Process
from hakmem.target.target import Target

LOOKS_MAX = 5
LOOKING_MAX_S = 3.0
PAUSE_S = 0.02

CORE_NOTES = [
    "From a core: it does not tell which pages were resident. Pages that hold anything but zeros are taken "
    "for resident, so all figures are estimates.",
    "Not known from a core: stacks, files, shared memory and other mappings; the lines add up to hakmem's "
    "part only.",
]


@dataclass
class Explanation:
    """All of RSS, in lines that add up to it."""

    pid: int
    command: list[str]
    version: str
    rss_bytes: int
    lines: list[Line]  # largest first
    verdict: str
    swap_bytes: int = 0
    not_resident_live_bytes: int = 0
    purgeable_bytes: int = 0  # what hak_purge(true) would return, about
    changed_bytes: int = 0  # how much RSS moved while it was read
    looks: int = 1
    is_core: bool = False
    notes: list[str] = field(default_factory=list)
    limits: LimitFigures | None = None
    limit_notes: list[str] = field(default_factory=list)  # what was refused, which limits are near

    def to_json(self) -> dict[str, Any]:
        """The keys are the fields' names."""
        return asdict(self)


def explain(target: Target) -> Explanation:
    """Looks into a process, or a core, and explains its RSS."""
    if target.process is None:
        return explain_core(target)
    looks = [look_at(target, target.process)]
    until_s = time.monotonic() + LOOKING_MAX_S
    while not looks[-1].is_steady and len(looks) < LOOKS_MAX and time.monotonic() < until_s:
        time.sleep(PAUSE_S)
        looks.append(look_at(target, target.process))
    best = min(looks, key=lambda look: look.changed_bytes)
    lines = all_lines(best, thread_names(target.process))
    made = explanation(target, best, lines, verdict(lines, best.rss_bytes))
    made.looks = len(looks)
    made.notes = notes(best, len(looks))
    return made


def explain_core(target: Target) -> Explanation:
    """hakmem's part, estimated."""
    look = look_at_core(target)
    lines = own_lines(look, {})
    for line in lines:
        line.exact = False
    made = explanation(target, look, lines, verdict(lines, look.rss_bytes, "hakmem's memory"))
    made.is_core = True
    made.notes = CORE_NOTES
    return made


def explanation(target: Target, look: Look, lines: list[Line], words: str) -> Explanation:
    """What a look means."""
    limits = take(target, detail="counters").limits
    return Explanation(
        pid=target.pid,
        command=target.command,
        version=target.schema.version,
        rss_bytes=look.rss_bytes,
        lines=lines,
        verdict=words,
        swap_bytes=look.swap_bytes,
        not_resident_live_bytes=look.residency.not_resident_live_bytes,
        purgeable_bytes=look.residency.purgeable_bytes,
        changed_bytes=look.changed_bytes,
        limits=limits,
        limit_notes=limit_notes(limits) if limits else [],
    )


def notes(look: Look, looks: int) -> list[str]:
    """What a reader of the lines should know."""
    made = []
    if not look.is_steady:
        made.append(
            f"The process changed while it was read: by {bytes_text(look.changed_bytes)} in the steadiest of "
            f"{looks} looks. The lines are off by about that much."
        )
    if look.swap_bytes:
        made.append(f"{bytes_text(look.swap_bytes)} more are swapped out; they are no part of RSS.")
    return made


def thread_names(process: Process) -> dict[int, str]:
    """Names for the details; nothing depends on them."""
    try:
        return process.thread_names()
    except HakmemError:
        return {}
