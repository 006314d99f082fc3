"""Figures besides time and peak memory that only some programs print: memory after a pause, single calls'
latency, memory against live data, for each idle thread, for each process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from .execute import Sample

Row = dict[str, Any]
Table = dict[str, Any]
# The figure of one run, or None when its program does not print it.
Reader = Callable[[Sample], float | None]

AFTER_IDLE = "RSS after idle"
LATENCY = "Tail latency of single calls"
WORST = "Longest single call"
AGAIN = "Reuse of freed memory"
MEMORY = "Memory over time, per thread, per process"


def value_of(key: str, divisor: float = 1.0) -> Reader:
    """Reads one key of the result line."""
    return lambda sample: sample[key] / divisor if key in sample else None


def rss_over_live(sample: Sample) -> float | None:
    """Resident memory at the end against the bytes that the program still uses."""
    if "rss_over_live" in sample:
        return sample["rss_over_live"]
    if sample.get("live_bytes", 0) > 0 and "rss_end_kib" in sample:
        return sample["rss_end_kib"] * 1024 / sample["live_bytes"]
    return None


@dataclass(frozen=True)
class Extra:
    """A figure: the table it belongs to, the text after the benchmark's name, and its unit."""

    title: str
    label: str
    unit: str
    read: Reader


EXTRAS = (
    Extra(AFTER_IDLE, "", "MiB", value_of("rss_idle_kib", 1024)),
    *(
        Extra(LATENCY, label, "ns", value_of(key))
        for key, label in (
            ("p50_ns", "p50"),
            ("p99_ns", "p99"),
            ("p999_ns", "p99.9"),
            ("p9999_ns", "p99.99"),
            ("max_ns", "max"),
        )
    ),
    Extra(WORST, "processor time", "µs", value_of("worst_cpu_ns", 1000)),
    Extra(WORST, "wall time", "µs", value_of("worst_wall_ns", 1000)),
    Extra(AGAIN, "processor time", "ms", value_of("again_cpu_ms")),
    Extra(AGAIN, "page faults a buffer", "", value_of("young_faults")),
    Extra(MEMORY, "RSS / live data", "", rss_over_live),
    Extra(MEMORY, "per idle thread", "KiB", value_of("rss_per_idle_thread_bytes", 1024)),
    Extra(MEMORY, "peak of a process", "MiB", value_of("child_peak_rss_kib", 1024)),
    Extra(MEMORY, "address space", "MiB", value_of("addresses_kib", 1024)),
)


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "min": min(values), "max": max(values)}


def _cells(bench: Row, read: Reader) -> dict[str, dict[str, float]]:
    cells = {}
    for name, cell in bench["cells"].items():
        values = [value for value in map(read, cell["samples"]) if value is not None]
        if values:
            cells[name] = _spread(values)
    return cells


def _row(bench: Row, extra: Extra, peers: list[str]) -> Row | None:
    cells = _cells(bench, extra.read)
    if not cells:
        return None
    row: Row = {"benchmark": bench["name"], "label": extra.label, "unit": extra.unit, "cells": cells}
    present = [name for name in peers if name in cells]
    if present:
        best = min(present, key=lambda name: cells[name]["median"])
        reference = cells[best]["median"]
        row["best_peer"] = best
        if reference > 0:
            for cell in cells.values():
                cell["ratio"] = cell["median"] / reference
    return row


def extra_tables(rows: list[Row], peers: list[str]) -> list[Table]:
    """One table a title, with rows in the order of the benchmarks; titles without rows are left out."""
    tables = []
    for title in dict.fromkeys(extra.title for extra in EXTRAS):
        extras = [extra for extra in EXTRAS if extra.title == title]
        found = [_row(bench, extra, peers) for bench in rows for extra in extras]
        if any(found):
            tables.append({"title": title, "rows": [row for row in found if row is not None]})
    return tables
