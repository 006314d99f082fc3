"""The lines that RSS is split into, with their details."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hakmem.census import catalogue
from hakmem.census.census import ClassCensus
from hakmem.census.residency import Residency
from hakmem.census.scan import Scan
from hakmem.target.mappings import Outside

Detail = dict[str, Any]


@dataclass
class Line:
    name: str
    bytes: int
    exact: bool
    advice: str
    details: list[Detail] = field(default_factory=list)


def sorted_lines(lines: Iterable[Line]) -> list[Line]:
    return sorted((line for line in lines if line.bytes), key=lambda line: -line.bytes)


def own_lines(scan: Scan, names: dict[int, str]) -> list[Line]:
    """The parts of hakmem's window; `names` are those of threads."""
    residency, quarantine_bytes = scan.residency, scan.residency.quarantine_bytes
    requested_bytes = residency.requested_bytes
    rounding_bytes, cached_bytes = residency.live_bytes - requested_bytes, residency.cached_bytes
    parts: list[tuple[catalogue.Figure, int, bool, list[Detail]]] = [
        (catalogue.LIVE, requested_bytes, False, live_details(residency)),
        (catalogue.ROUNDING, rounding_bytes, False, rounding_details(residency)),
        (catalogue.FREE, residency.free_block_bytes, True, free_details(residency)),
        (catalogue.CACHED, cached_bytes - quarantine_bytes, True, thread_details(scan, names, "bytes")),
        (catalogue.QUARANTINE, quarantine_bytes, True, thread_details(scan, names, "quarantine_bytes")),
        (catalogue.POOL, residency.pool_bytes, True, pool_details(residency)),
        (catalogue.RANGES_CACHED, residency.range_cached_bytes, True, []),
        (catalogue.RANGES_FREE, residency.range_free_bytes, True, []),
        (catalogue.METADATA, residency.metadata_bytes + scan.library_bytes, True, []),
    ]
    return sorted_lines(
        Line(figure.label, count, exact, figure.explained, details) for figure, count, exact, details in parts
    )


def other_lines(scan: Scan) -> list[Line]:
    """The parts outside hakmem.  Stacks are recognised by guard pages, which other mappings may have too."""
    sums = dict(scan.outside)
    sums[Outside.ANONYMOUS] = sums.get(Outside.ANONYMOUS, 0) + scan.residency.foreign_bytes
    lines = catalogue.LINES
    return [Line(kind.value, sums[kind], kind is not Outside.STACKS, lines[kind].explained) for kind in sums]


def by_bytes(classes: Sequence[ClassCensus], name: str) -> list[ClassCensus]:
    """The classes with any bytes of this kind, largest first."""
    return sorted(
        (item for item in classes if getattr(item, name) > 0), key=lambda item: -getattr(item, name)
    )


def live_details(residency: Residency) -> list[Detail]:
    details: list[Detail] = [
        {"block_bytes": item.block_bytes, "bytes": item.requested_bytes, "live_blocks": item.live_blocks}
        for item in by_bytes(residency.classes, "requested_bytes")
    ]
    if residency.big_live_bytes:
        details.append({"block_bytes": None, "bytes": residency.big_live_bytes})
    return sorted(details, key=lambda detail: -detail["bytes"])


def rounding_details(residency: Residency) -> list[Detail]:
    return [
        {
            "block_bytes": item.block_bytes,
            "bytes": item.rounding_bytes,
            "mean_request_bytes": round(item.mean_request_bytes or item.block_bytes, 1),
        }
        for item in by_bytes(residency.classes, "rounding_bytes")
    ]


def free_details(residency: Residency) -> list[Detail]:
    """Free blocks by class, and how sparse its slabs are."""
    return [
        {
            "block_bytes": item.block_bytes,
            "bytes": item.free_bytes,
            "free_page_bytes": item.free_page_bytes,
            "slabs": item.slabs,
            "live_blocks_per_slab": round(item.live_blocks / item.slabs, 1),
            "capacity_blocks_per_slab": round(item.capacity_blocks / item.slabs, 1),
        }
        for item in by_bytes(residency.classes, "free_bytes")
    ]


def thread_details(scan: Scan, names: dict[int, str], figure: str) -> list[Detail]:
    """Cached bytes by thread: a figure of HeapResidency."""
    schema = scan.reading.schema
    ended = schema.constants.get("owner_parked")
    return [
        {
            "thread_id": heap.thread_id,
            "name": names.get(heap.thread_id, "ended" if heap.state == ended else ""),
            "heap": heap.number,
            "bytes": held,
        }
        for held, heap in sorted(
            ((getattr(heap, figure), heap) for heap in scan.residency.heaps), key=lambda pair: -pair[0]
        )
        if held
    ]


def pool_details(residency: Residency) -> list[Detail]:
    kinds = (
        ("EMPTY, kept for their class", residency.empty_slab_bytes),
        ("UNUSED, in SuperSlabs in use", residency.unused_slab_bytes),
        ("completely free SuperSlabs", residency.kept_superslab_bytes),
    )
    return [{"kind": kind, "bytes": count} for kind, count in kinds if count]
