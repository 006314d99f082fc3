"""The figures as text, for the terminal and the page alike."""

# ruff: noqa: RUF001
from __future__ import annotations

from .figures import Cell
from .verdicts import OWN_BASELINE_TARGET, Cells, OwnBaseline, Verdict

SPEED_HEADS = ("threads", "M ops/s", "spread", "CPU ns/op", "peak MiB")
COUNTER_HEADS = ("reuse", "new pages", "new pages/s", "CAS retries/M", "locks/M", "futex calls/M")
VERDICT_HEADS = ("experiment", "seed", "here", "verdict", "reason")


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.2%}"


def cell_row(cell: Cell) -> list[str]:
    """All figures of one cell, in the order of SPEED_HEADS (without threads) and COUNTER_HEADS."""
    spread = f"{cell.ops_low / cell.ops_per_s - 1:+.0%} {cell.ops_high / cell.ops_per_s - 1:+.0%}"
    return [
        f"{cell.ops_per_s / 1e6:.2f}" + ("*" if cell.ran_out_of_pages else ""),
        spread,
        f"{cell.cpu_ns_per_op:.0f}",
        f"{cell.peak_rss_mib:.0f}",
        _percent(cell.reuse),
        _number(cell.new_pages),
        _number(cell.new_pages_per_s),
        _number(cell.cas_retries_per_mop),
        _number(cell.locks_per_mop),
        _number(cell.futex_per_mop),
    ]


def all_rows(cells: Cells) -> list[list[str]]:
    """One row a cell, name and threads first."""
    return [[name, str(threads), *cell_row(cell)] for (name, threads), cell in cells.items()]


def verdict_row(verdict: Verdict) -> list[str]:
    """In the order of VERDICT_HEADS."""
    return [verdict.name, verdict.seed, verdict.here, verdict.verdict, verdict.reason]


def own_baseline_lines(ratios: list[OwnBaseline]) -> list[str]:
    """One sentence a number of threads."""
    return [
        f"A2, {r.threads} thread{'s' * (r.threads > 1)}: hakmem is {r.speed}× its own sharded mutexes in "
        f"operations a second, {r.cost}× in processor time; target {OWN_BASELINE_TARGET}×: "
        f"{'met' if r.is_met else 'NOT met'}"
        for r in ratios
    ]
