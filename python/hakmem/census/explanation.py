"""The answer of `why`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hakmem.census.limits import LimitFigures
from hakmem.census.lines import Line

CORE_NOTES = [
    "A core does not record which pages were resident. Pages that are not all zeros count as resident, so "
    "all figures are estimates.",
    "A core does not cover stacks, files, shared memory and other mappings: the lines add up to malloc's "
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
    huge_bytes: int = 0  # of RSS, in transparent huge pages
    not_resident_live_bytes: int = 0
    purgeable_bytes: int = 0  # that hak_purge(true) would return, estimated
    movable_bytes: int = 0  # that moving live blocks into fewer slabs would return, estimated
    movable_classes: dict[int, int] = field(default_factory=dict)  # of those, by bytes of a block; most first
    changed_bytes: int = 0  # how much RSS changed while it was read
    scans: int = 1
    is_core: bool = False
    notes: list[str] = field(default_factory=list)
    limits: LimitFigures | None = None
    limit_notes: list[str] = field(default_factory=list)  # refused requests, limits that are close
    heaps: list[dict[str, Any]] = field(default_factory=list)  # that it has made; most live bytes first
    heaps_text: str = ""  # which of them hold most
    malloc: str = "hakmem"  # whose heap it is
    broken: list[Any] = field(default_factory=list)  # where glibc's heap is damaged
