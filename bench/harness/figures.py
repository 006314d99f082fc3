"""The mission's counted figures, from hakmem's own counters in its extra, untimed runs.

Times are never looked at here: these figures hold on any machine.
"""

from __future__ import annotations

from typing import Any

Report = dict[str, Any]
Figure = dict[str, Any]


def page_reuse(report: Report) -> float | None:
    """The part of the times a thread ran out of blocks in its slab that found used pages (A1)."""
    counters = report["exit"]
    reuses, new_pages = int(counters["unstable_page_reuses"]), int(counters["unstable_new_pages_forced"])
    return reuses / (reuses + new_pages) if reuses + new_pages else None


def magazine_hit_rate(report: Report) -> float:
    """1 - misses / calls: refills and flushes against the calls that the benchmark itself counted (A7)."""
    calls = float(report["sample"]["mallocs"] + report["sample"]["frees"])
    misses = int(report["exit"]["refills"] + report["exit"]["flushes"])
    return max(0.0, 1 - misses / calls)


def locks_per_million(report: Report) -> float:
    """Lock acquisitions per million operations within the measured time (A3)."""
    return float(report["measured"]["unstable_lock_acquisitions"] * 1e6 / report["sample"]["ops"])


def make_figure(name: str, value: str, target: str, met: bool) -> Figure:
    """A figure beside its target."""
    return {"name": name, "value": value, "target": target, "met": met}


def _a1(bench: str, report: Report) -> list[Figure]:
    reuse, new_pages = page_reuse(report), report["exit"]["unstable_new_pages_forced"]
    seconds = report["sample"]["seconds"]
    text = "no page needed" if reuse is None else f"{reuse:.2%}"
    return [
        make_figure(f"A1 page reuse, {bench}, {seconds:.1f} s", text, "> 90 %", reuse is None or reuse > 0.9),
        make_figure(
            f"A1 new pages, {bench}, {seconds:.1f} s", f"{new_pages:,}", "< 50,000", new_pages < 50_000
        ),
    ]


def _a3(bench: str, report: Report) -> list[Figure]:
    warm, total = (
        report["measured"]["unstable_lock_acquisitions"],
        report["exit"]["unstable_lock_acquisitions"],
    )
    value = f"{warm:,} ({locks_per_million(report):.3f} per million ops); whole process {total:,}"
    return [make_figure(f"A3 lock acquisitions after warm-up, {bench}", value, "0", warm == 0)]


def _a7(bench: str, report: Report) -> list[Figure]:
    rate = magazine_hit_rate(report)
    return [make_figure(f"A7 magazine hit rate, {bench}", f"{rate:.3%}", "≥ 99.8 %", rate >= 0.998)]


FIGURES = (
    ("larson-mid-4t", _a1),
    ("mid_large_mt-4t", _a3),
    ("mid_large_mt-8t", _a3),
    ("mid_large_mt-4t", _a7),
)

COUNTED = frozenset(bench for bench, _ in FIGURES)


def mission_figures(reports: dict[str, Report]) -> list[Figure]:
    """The figures whose benchmarks were run."""
    return [figure for bench, make in FIGURES if bench in reports for figure in make(bench, reports[bench])]
