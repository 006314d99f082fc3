"""From samples to figures: medians, spread, ratios to the best peer, geometric means.

The result is one plain document that JSON can hold; tables, Markdown, CSV and the mission's figures are
made from it alone, so that a saved run can be shown again.
"""

from __future__ import annotations

from math import inf
from statistics import geometric_mean, median
from typing import Any

from .allocators import Allocator
from .campaign import NOISE, Outcome, Plan, cpu_ns_per_op, uncertain
from .estimate import Estimate, mean_spread
from .execute import Sample, tuning_variables
from .extras import extra_tables
from .figures import mission_figures
from .machine import describe_allocators
from .targets import targets
from .workload import CASE, KINDS, kind_of

Document = dict[str, Any]

# The compared figures; lower is better in all of them.  Wall time stands beside them where threads wait.
TIME, PEAK, WALL = "cpu_ns_per_op", "peak_rss_kib", "ns_per_op"


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "min": min(values), "max": max(values)}


def _cell(samples: list[Sample]) -> dict[str, Any]:
    """One allocator's figures in one benchmark."""
    samples = [{**sample, TIME: cpu_ns_per_op(sample)} for sample in samples]
    cell: dict[str, Any] = {name: _spread([s[name] for s in samples]) for name in (TIME, PEAK, WALL)}
    cell["faults_per_op"] = median(s["minor_faults"] / s["ops"] for s in samples)
    cell["samples"] = samples
    return cell


def _add_times(cells: dict[str, dict[str, Any]], peers: list[str], estimates: dict[str, Estimate]) -> str:
    """Adds `pair`, the first allocator's ratio to each other, with its interval, and each one's ratio to
    the best peer; returns that one's name.  A median becomes the first allocator's times the pairs' ratio."""
    first = next(cell for name, cell in cells.items() if name not in estimates)
    for name, each in estimates.items():
        cells[name][TIME]["median"] = first[TIME]["median"] * each.ratio
        cells[name][TIME]["pair"] = {
            "ratio": 1 / each.ratio,
            "low": 1 / each.high,
            "high": 1 / each.low if each.low else inf,
            "pairs": each.pairs,
            "known": each.is_known,
        }
    relative = {name: estimates[name].ratio if name in estimates else 1.0 for name in cells}
    best = min(peers, key=lambda name: relative[name])
    for name, cell in cells.items():
        cell[TIME]["ratio"] = relative[name] / relative[best]
    return best


def _add_peaks(cells: dict[str, dict[str, Any]], peers: list[str]) -> str:
    """Adds each allocator's ratio to the leanest peer; returns that one's name."""
    best = min(peers, key=lambda name: cells[name][PEAK]["median"])
    for cell in cells.values():
        cell[PEAK]["ratio"] = cell[PEAK]["median"] / cells[best][PEAK]["median"]
    return best


def _benchmark_rows(plan: Plan, outcome: Outcome) -> list[dict[str, Any]]:
    rows = []
    for bench in plan.workloads:
        if not outcome.blocks.get(bench.name):
            continue
        cells = {
            a.name: _cell(samples)
            for a in plan.allocators
            if (samples := outcome.samples(bench.name, a.name))
            and (bench.name, a.name) not in outcome.failures
        }
        # A wrapper brings another C library: the difference is not malloc's alone.
        peers = [a.name for a in plan.allocators if a.is_peer and not a.wrapper and a.name in cells]
        estimates = {name: each for name, each in outcome.estimates(bench.name).items() if name in cells}
        best = {}
        if peers and plan.reference in cells:
            best = {TIME: _add_times(cells, peers, estimates), PEAK: _add_peaks(cells, peers)}
        rows.append(
            {
                "name": bench.name,
                "command": bench.command_text(plan.length_of(bench)),
                "kind": kind_of(bench),
                "cells": cells,
                "best_peer": best,
                "known": all(
                    estimates[a.name].is_known
                    for a in plan.allocators
                    if a.name in estimates and not a.wrapper
                ),
            }
        )
    return rows


def _geometric_means(rows: list[dict[str, Any]], allocators: list[Allocator]) -> dict[str, Any]:
    """Means of the ratios, over the benchmarks that every allocator finished, of times over those of which
    all ratios are known: the same set for all, and none if it is less than half of them, as ratios far
    from 1 are known first.  An allocator that finished none does not count, nor one that a wrapper starts: it
    cannot finish all."""
    some = {a.name for a in allocators if any(a.name in row["cells"] for row in rows)}
    names = [a.name for a in allocators if a.name in some and not a.wrapper]
    common = [row for row in rows if row["best_peer"] and all(name in row["cells"] for name in names)]
    of = {TIME: [row for row in common if row["known"]], PEAK: common}
    return {
        measure: {
            name: geometric_mean(row["cells"][name][measure]["ratio"] for row in counted)
            for name in names
            if 0 < len(common) <= 2 * len(counted)
        }
        for measure, counted in of.items()
    } | {
        "benchmarks": {measure: len(counted) for measure, counted in of.items()},
        "rows": len(common),
        "interval": _mean_interval(of[TIME]),
    }


def _mean_interval(rows: list[dict[str, Any]]) -> list[float]:
    """The factors from the first allocator's mean to the ends of its 95 % interval."""
    found = [row["cells"][row["best_peer"][TIME]][TIME].get("pair") for row in rows]
    spread = mean_spread([each for each in found if each])
    return [1 / spread, spread]


def _noise(outcome: Outcome) -> dict[str, float]:
    """Disturbances of the runs, in the median, and how many there were and were repeated."""
    samples = [sample for blocks in outcome.blocks.values() for block in blocks for sample in block.values()]
    figures = sorted({key for sample in samples for key in sample if key.startswith(NOISE)})
    found = {key.removeprefix(NOISE): median(s[key] for s in samples if key in s) for key in figures}
    return {**found, "runs": len(samples), "repeated": sum(sample.get("repeated", 0) for sample in samples)}


def _failures(outcome: Outcome) -> list[str]:
    found = [f"{bench} on {name}: {why}" for (bench, name), why in outcome.failures.items()]
    return found + [f"hakmem's counters of {b}: {why}" for b, why in outcome.report_failures.items()]


def summarise(plan: Plan, outcome: Outcome, machine: dict[str, str], missing: list[str]) -> Document:
    """The document of a campaign."""
    rows = _benchmark_rows(plan, outcome)
    document = {
        "machine": machine,
        "allocators": describe_allocators(plan.allocators),
        "reference": plan.reference,
        "blocks": sum(map(len, outcome.blocks.values())),
        "noise": _noise(outcome),
        "seconds": plan.length.seconds,
        "quick": plan.length.quick,
        "minutes_allowed": plan.minutes,
        "minutes_taken": outcome.seconds / 60,
        "environment": tuning_variables(),
        "benchmarks": rows,
        "geometric_means": {
            "all loads": _geometric_means([row for row in rows if row["kind"] != CASE], plan.allocators),
            **{
                kind: _geometric_means([row for row in rows if row["kind"] == kind], plan.allocators)
                for kind in KINDS
            },
        },
        "extras": extra_tables(rows, [a.name for a in plan.allocators if a.is_peer]),
        "hakmem_reports": outcome.reports,
        "figures": mission_figures(outcome.reports),
        "missing": missing,
        "left_out": [each.name for each in plan.workloads if not outcome.blocks.get(each.name)],
        "uncertain": uncertain(plan, outcome),
        "failures": _failures(outcome),
    }
    return document | {"targets": targets(document)}
