"""`hakmem run --when`: a figure and the size above which a profile is written.

rss>80%      of what the process may use: the tightest cgroup's limit, else the machine's memory
live>500M    bytes in live blocks, in K, M, G or T (of 1,024), or B
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hakmem.base.sizes import bytes_text
from hakmem.target.cgroup import cgroup_limits
from hakmem.target.process import machine_memory

RULE = re.compile(r"(rss|live)\s*>\s*([0-9]+(?:\.[0-9]+)?)\s*(?:(%)|([BKMGT])(?:I?B)?)", re.IGNORECASE)
UNITS = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Condition:
    """True when the figure is above `bytes`."""

    text: str
    figure: str  # rss: of the process; live: bytes in its live blocks
    bytes: int


def parse_condition(text: str, memory_bytes: int) -> Condition:
    """ValueError with a sentence for the user; `memory_bytes` is what percents are of."""
    match = RULE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a condition; examples: 'rss>80%', 'rss>2G' or 'live>500M'")
    size = int(float(match[2]) * (memory_bytes / 100 if match[3] else UNITS[match[4].upper()]))
    if not 0 < size < memory_bytes:
        raise ValueError(
            f"{text!r} is always true, or never: there are {bytes_text(memory_bytes)} for the process"
        )
    return Condition(text.strip(), match[1].lower(), size)


def usable_bytes() -> int:
    """Memory that this process and its children may use: the cgroup's limit or the machine's memory."""
    machine = machine_memory()["MemTotal"]
    return min(machine, cgroup_limits().memory_bytes or machine)
