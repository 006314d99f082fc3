"""The figures of a snapshot and their JSON form: the keys are the field names.

In the quick form, unknown figures are None (slab figures of a class) or empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hakmem.census.heap_figures import NamedHeapFigures, quoted
from hakmem.census.limits import LimitFigures
from hakmem.census.options import ChangedOption
from hakmem.target.process import ProcessFigures

TIERS = ("tiny", "mid", "large")
FILL_STEPS = 11  # 0 %, 1–10 %, 11–20 % … 91–100 %


@dataclass(frozen=True)
class ClassFigures:
    """One size class.  The figures below `quarantine_blocks` are None in the quick form."""

    number: int
    tier: str  # of TIERS
    block_bytes: int
    refilled_blocks: int  # fetched by malloc below the magazine
    flushed_blocks: int  # flushed by free below the magazine
    sampled_requests: int  # requests that missed the magazine …
    sampled_bytes: int  # … and the bytes that they requested
    magazine_blocks: int
    quarantine_blocks: int = 0  # hardened mode: freed, reuse delayed
    slabs: int | None = None
    capacity_blocks: int | None = None
    free_blocks: int | None = None
    remote_blocks: int | None = None  # freed by other threads, not collected yet
    live_blocks: int | None = None

    @property
    def live_bytes(self) -> int:
        return (self.live_blocks or 0) * self.block_bytes

    @property
    def cached_blocks(self) -> int:
        return self.magazine_blocks + self.quarantine_blocks

    @property
    def mean_request_bytes(self) -> float | None:
        """Estimated from the requests that missed the magazine; None if there were none."""
        return self.sampled_bytes / self.sampled_requests if self.sampled_requests else None


@dataclass(frozen=True)
class BigFigures:
    """Live Big blocks: above 1 MiB."""

    blocks: int | None
    bytes: int


@dataclass(frozen=True)
class ThreadFigures:
    """One heap, and the thread that has it."""

    number: int
    thread_id: int  # the kernel's; 0 for a heap without a thread
    name: str
    state: str  # "running", "dormant", "ended", "lost"
    magazine_bytes: dict[str, int]  # by tier
    bytes_out: int  # in slab blocks taken by it and not returned
    slow_paths: int
    quarantine_bytes: int = 0  # hardened mode
    heap_name: str = ""  # that the program has given it

    @property
    def cached_bytes(self) -> int:
        return sum(self.magazine_bytes.values()) + self.quarantine_bytes

    @property
    def label(self) -> str:
        """The thread's name, and the heap's if it has one."""
        return " ".join(filter(None, (self.name, quoted(self.heap_name) if self.heap_name else "")))


@dataclass(frozen=True)
class MemoryFigures:
    """Where memory is.  Figures of slabs and ranges are None in the quick form."""

    # In blocks held by the program, rounding included.  The quick form includes blocks that other threads
    # freed and the owner has not collected yet.
    live_bytes: int
    cached_bytes: int  # in magazines and quarantines
    metadata_bytes: int
    quarantine_bytes: int = 0  # of the cached ones (hardened mode)
    mapped_bytes: int | None = None  # SuperSlabs and ranges
    free_slab_bytes: int | None = None  # free blocks of slabs in use
    ranges_dirty_bytes: int | None = None  # free, not purged
    ranges_clean_bytes: int | None = None  # free, purged or never used
    # In the call-site cache and the BigCache; in hardened mode in quarantine, without pages.
    ranges_cached_bytes: int | None = None
    superslabs_by_fill: list[int] = field(default_factory=list)  # FILL_STEPS counts


@dataclass(frozen=True)
class Snapshot:
    pid: int
    version: str
    format: int
    time_s: float
    monotonic_s: float
    command: list[str]
    detail: str  # "full" or "counters"
    counters: dict[str, int]
    totals: dict[str, int]
    options: dict[str, int | str]
    classes: list[ClassFigures]
    big: BigFigures
    threads: list[ThreadFigures]
    memory: MemoryFigures
    process: ProcessFigures | None = None
    options_changed: list[ChangedOption] = field(default_factory=list)  # those that differ from the default
    limits: LimitFigures | None = None
    heaps: list[NamedHeapFigures] = field(default_factory=list)  # that the program has made, or named
