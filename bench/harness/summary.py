"""From samples to figures: medians, spread, ratios to the best peer, geometric means.

The result is one plain document that JSON can hold; tables, Markdown, CSV and the mission's figures are
made from it alone, so that a saved run can be shown again.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import geometric_mean, median
from typing import Any

from .allocators import Allocator
from .campaign import Outcome, Plan
from .execute import Sample, tuning_variables
from .extras import extra_tables
from .figures import mission_figures
from .machine import describe_allocators
from .targets import targets

Document = dict[str, Any]

# The compared figures; lower is better in all of them.
COMPARED = ("ns_per_op", "cpu_ns_per_op", "peak_rss_kib")


def _cpu_ns_per_op(sample: Sample) -> float:
    """At least a microsecond a run: the kernel's count of a very short run may be 0, and ratios are made."""
    return max(sample["user_s"] + sample["sys_s"], 1e-6) * 1e9 / sample["ops"]


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "min": min(values), "max": max(values)}


def _cell(samples: list[Sample]) -> dict[str, Any]:
    """One allocator's figures in one benchmark."""
    samples = [{**sample, "cpu_ns_per_op": _cpu_ns_per_op(sample)} for sample in samples]
    cell: dict[str, Any] = {name: _spread([s[name] for s in samples]) for name in COMPARED}
    cell["faults_per_op"] = median(s["minor_faults"] / s["ops"] for s in samples)
    cell["samples"] = samples
    return cell


def _add_ratios(cells: dict[str, dict[str, Any]], peers: Iterable[str]) -> dict[str, str]:
    """Adds each allocator's ratio to the best peer; returns the best peers' names."""
    present = [name for name in peers if name in cells]
    best: dict[str, str] = {}
    for measure in COMPARED if present else ():
        best[measure] = min(present, key=lambda name: cells[name][measure]["median"])
        reference = cells[best[measure]][measure]["median"]
        for cell in cells.values():
            cell[measure]["ratio"] = cell[measure]["median"] / reference
    return best


def _benchmark_rows(plan: Plan, outcome: Outcome) -> list[dict[str, Any]]:
    rows = []
    for bench in plan.workloads:
        if bench.name in outcome.left_out:
            continue
        cells = {
            a.name: _cell(outcome.samples[bench.name, a.name])
            for a in plan.allocators
            if (bench.name, a.name) in outcome.samples and (bench.name, a.name) not in outcome.failures
        }
        best = _add_ratios(cells, [a.name for a in plan.allocators if a.is_peer])
        command = bench.command_text(plan.length)
        rows.append(
            {
                "name": bench.name,
                "command": command,
                "real": bench.is_real,
                "case": bench.is_case,
                "round_seconds": outcome.costs.get(bench.name),
                "cells": cells,
                "best_peer": best,
            }
        )
    return rows


def _geometric_means(rows: list[dict[str, Any]], allocators: list[Allocator]) -> dict[str, Any]:
    """Means of the ratios, over the benchmarks that every allocator finished: the same set for all.  An
    allocator that finished none does not count."""
    names = [a.name for a in allocators if any(a.name in row["cells"] for row in rows)]
    common = [row for row in rows if row["best_peer"] and all(name in row["cells"] for name in names)]
    return {
        measure: {
            name: geometric_mean(row["cells"][name][measure]["ratio"] for row in common)
            for name in names
            if common
        }
        for measure in COMPARED
    } | {"benchmarks": len(common)}


def _failures(outcome: Outcome) -> list[str]:
    found = [f"{bench} on {name}: {why}" for (bench, name), why in outcome.failures.items()]
    return found + [f"hakmem's counters of {b}: {why}" for b, why in outcome.report_failures.items()]


def summarise(plan: Plan, outcome: Outcome, machine: dict[str, str], missing: list[str]) -> Document:
    """The document of a campaign."""
    rows = _benchmark_rows(plan, outcome)
    document = {
        "machine": machine,
        "allocators": describe_allocators(plan.allocators),
        "rounds": outcome.rounds,
        "rounds_planned": plan.rounds,
        "seconds": plan.length.seconds,
        "quick": plan.length.quick,
        "minutes_allowed": plan.minutes,
        "minutes_taken": outcome.seconds / 60,
        "environment": tuning_variables(),
        "benchmarks": rows,
        "geometric_means": _geometric_means([row for row in rows if not row["case"]], plan.allocators),
        "geometric_means_cases": _geometric_means([row for row in rows if row["case"]], plan.allocators),
        "geometric_means_real": _geometric_means([row for row in rows if row["real"]], plan.allocators),
        "geometric_means_made_up": _geometric_means(
            [row for row in rows if not row["real"] and not row["case"]], plan.allocators
        ),
        "extras": extra_tables(rows, [a.name for a in plan.allocators if a.is_peer]),
        "hakmem_reports": outcome.reports,
        "figures": mission_figures(outcome.reports),
        "missing": missing,
        "left_out": outcome.left_out,
        "failures": _failures(outcome),
    }
    return document | {"targets": targets(document)}
