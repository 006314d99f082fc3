"""The verdict of `why`: how much is live, what the rest is, what to do first."""

from __future__ import annotations

from collections.abc import Sequence

from hakmem.base.sizes import bytes_text, counted, share_text
from hakmem.census.catalogue import CACHED, FREE, LINES, LIVE, METADATA, OWN_LINES, QUARANTINE
from hakmem.census.lines import Line

MENTION_SHARE = 0.1  # of the whole: larger parts are named
MOSTLY_LIVE_SHARE = 0.75
MOST_SHARE = 0.5
BEYOND_LIVE = [line.label for line in OWN_LINES if line not in (LIVE, METADATA)]


def verdict(lines: Sequence[Line], whole_bytes: int, whole: str = "RSS") -> str:
    """One or two sentences about lines that add up to `whole`."""
    if not whole_bytes:
        return "Nothing is resident."
    sizes = {line.name: line.bytes for line in lines}
    live_bytes = sizes.get(LIVE.label, 0)
    others = [line for line in lines if line.name != LIVE.label and line.bytes >= MENTION_SHARE * whole_bytes]
    first = f"{share_text(live_bytes, whole_bytes)} of {whole} is live data of the program"
    if not others:
        beyond = share_text(sum(sizes.get(name, 0) for name in BEYOND_LIVE), whole_bytes)
        return f"{first}; hakmem's overhead is {beyond}, nothing stands out."
    parts = ", ".join(f"{line.name} {share_text(line.bytes, whole_bytes)}" for line in others)
    if live_bytes >= MOSTLY_LIVE_SHARE * whole_bytes:
        return f"{first}; the rest is mostly {parts}."
    said = (f"{first}; other large parts: {parts}.", cause(others[0]), LINES[others[0].name].advice)
    return " ".join(filter(None, said))


def cause(line: Line) -> str:
    if line.name == FREE.label and line.details:
        return cause_of_free_blocks(line)
    if line.name in (CACHED.label, QUARANTINE.label) and line.details:
        held = f"They are held by {counted(len(line.details), 'thread')}"
        largest = bytes_text(line.details[0]["bytes"])
        return f"{held}, up to {largest} each." if len(line.details) > 1 else f"{held}."
    return ""


def cause_of_free_blocks(line: Line) -> str:
    """Whether one class dominates, and how sparse its slabs are."""
    worst = line.details[0]
    size = bytes_text(worst["block_bytes"])
    if worst["bytes"] < MOST_SHARE * line.bytes:
        return (
            f"They are spread over {counted(len(line.details), 'size class', 'size classes')}; blocks of "
            f"{size} are the largest part."
        )
    full = share_text(worst["live_blocks_per_slab"], worst["capacity_blocks_per_slab"])
    slabs = counted(worst["slabs"], "slab")
    return f"Most free bytes are in blocks of {size}: {slabs} with {full} live blocks."
