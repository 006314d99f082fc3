"""Figures of heaps that the program has made, and of threads' heaps that it has given a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hakmem.base.sizes import bytes_text, counted, share_text

NEAR_SHARE = 0.9  # of a limit: from here on it is reported unasked
HEAPS_SHOWN = 10
UNSEEN = "\N{REPLACEMENT CHARACTER}"
REST, REST_NAME = 0, "other heaps"  # no heap has this number
SUMMED = ("live_bytes", "live_blocks", "refusals", "allocated_blocks")
Series = tuple[str, str, str]  # name, tag, kind


@dataclass(frozen=True)
class NamedHeapFigures:
    """One heap.  None: not counted for a thread's heap, or by the library; or no limit."""

    number: int
    name: str
    tag: int  # the program's
    kind: (
        str  # "program"; "thread": its own heap, with a name; "cut off": a forked child cannot go on with it
    )
    thread_id: int  # the kernel's, of kind "thread"
    # Bytes of live blocks, rounding included; in a thread's heap also of blocks kept for reuse; in
    # the quick form also blocks that other threads freed and the heap has not collected yet.
    live_bytes: int
    live_blocks: int | None = None
    peak_bytes: int | None = None
    limit_bytes: int | None = None
    refusals: int = 0  # requests that the limit has refused
    allocated_blocks: int | None = None  # so far
    threads: int | None = None  # whose malloc gives its blocks now (hak_heap_use)
    serial: int = 0  # tells it from others that have its number after it; 0: not known

    @property
    def is_made(self) -> bool:
        """Made by the program, with memory of its own."""
        return self.kind != "thread"

    @property
    def series(self) -> Series:
        """Those of one name, tag and kind are one over time: heaps take each other's record."""
        return self.name, str(self.tag), self.kind

    @property
    def is_rest(self) -> bool:
        """Several heaps as one (`few_heaps`)."""
        return self.number == REST

    @property
    def is_near_limit(self) -> bool:
        return self.limit_bytes is not None and self.live_bytes > NEAR_SHARE * self.limit_bytes

    @property
    def limit_used_ratio(self) -> float | None:
        return self.live_bytes / self.limit_bytes if self.limit_bytes else None

    def counted_since(self, before: NamedHeapFigures | None) -> tuple[int, int]:
        """Refusals and allocations since the record had these figures.  A heap may have ended meanwhile, and
        this one have taken its record: then all that it has counted."""
        now = self.refusals, self.allocated_blocks or 0
        if before is None or before.serial != self.serial or now[1] < (before.allocated_blocks or 0):
            return now
        return max(0, now[0] - before.refusals), now[1] - (before.allocated_blocks or 0)


def few_heaps(heaps: Sequence[NamedHeapFigures], count: int) -> list[NamedHeapFigures]:
    """The first ones, and all others as one: `count` at most."""
    kept, rest = heaps[: count - 1], heaps[count - 1 :]
    if len(rest) <= 1:
        return list(heaps)
    threads = [heap.threads for heap in rest if heap.threads is not None]
    others = NamedHeapFigures(
        number=REST,
        name=f"{len(rest)} {REST_NAME}",
        tag=0,
        kind="program",
        thread_id=0,
        threads=sum(threads) if threads else None,
        **{name: sum(getattr(heap, name) or 0 for heap in rest) for name in SUMMED},
    )
    return [*kept, others]


# ---- as text -------------------------------------------------------------------------------------------


def limits_of_heaps(heaps: Sequence[NamedHeapFigures]) -> list[str]:
    """Notes shown unasked: limits that have refused requests or are close."""
    near = [heap for heap in heaps if heap.refusals or heap.is_near_limit]
    notes = [_limit_note(heap) for heap in near[:HEAPS_SHOWN]]
    if near[HEAPS_SHOWN:]:
        rest = counted(len(near) - HEAPS_SHOWN, "more heap")
        notes.append(f"{rest} close to a limit, or with refused requests.")
    return notes


def _limit_note(heap: NamedHeapFigures) -> str:
    refused, name = f"{counted(heap.refusals, 'request')} refused", heap_text(heap.name, heap.tag)
    if heap.limit_bytes is None:
        return f"Heap {name}: {refused} by a limit that it had; it has none now."
    held = f"{bytes_text(heap.live_bytes)}, {share_text(heap.live_bytes, heap.limit_bytes)} of its limit"
    said = f"Heap {name} holds {held} of {bytes_text(heap.limit_bytes)}"
    if heap.refusals:
        said += f"; {refused}"
    return f"{said}. Beyond it requests fail with ENOMEM: free blocks, or raise it (hak_set_limit)."


def heap_text(name: str, tag: int | str, *more: str) -> str:
    """“cache” (tag 7, in use by 2 threads)"""
    said = ", ".join(filter(None, (f"tag {tag}" if int(tag) else "", *more)))
    return quoted(name) + (f" ({said})" if said else "")


def label(heap: NamedHeapFigures) -> str:
    """In a table or a legend."""
    return heap.name if heap.is_rest else quoted(heap.name)


def quoted(name: str) -> str:
    """A heap's name on one line, whatever bytes the program has put there."""
    return f"“{''.join(sign if sign.isprintable() else UNSEEN for sign in name)}”"
