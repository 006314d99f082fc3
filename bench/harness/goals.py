"""Goals of hakmem in the cases: limits of single figures, absolute or against the best peer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .extras import AFTER_IDLE, AGAIN, WORST
from .figures import Figure, make_figure
from .text import digits

Document = dict[str, Any]
Cell = dict[str, float]

CPU, PEAK = "cpu_ns_per_op", "peak_rss_kib"
RATIO = "of the best peer"
# Measures of all benchmarks: their name in a sentence, and what to divide by for which unit.
MEASURES = {CPU: ("processor time of an operation", "µs", 1000.0), PEAK: ("peak memory", "MiB", 1024.0)}


@dataclass(frozen=True)
class Goal:
    """`measure` is one of MEASURES, or a title of `extras` with the `label` of its row.  `unit` RATIO: the
    limit is one for hakmem's median over the best peer's; else it is in that unit."""

    case: str
    measure: str
    limit: float
    unit: str
    label: str = ""


GOALS = (
    *(Goal(f"worst_call-{who}", WORST, 1000, "µs", "processor time") for who in ("own", "other")),
    *(Goal(f"server-{count}", AFTER_IDLE, 20, "MiB") for count in (20, 2000)),
    Goal("idle-1g", AFTER_IDLE, 32, "MiB"),
    Goal("pool-64t", AFTER_IDLE, 66, "MiB"),
    Goal("burst-again", AGAIN, 32, "ms", "processor time"),
    *(Goal(f"growth-{threads}t", CPU, 4.3, "µs") for threads in (1000, 8000)),
    Goal("growth-after-peak", CPU, 3, "µs"),
    Goal("fork-3000t", WORST, 1000, "µs", "processor time"),
    Goal("aligned-2m", CPU, 1.1, RATIO),
    Goal("aligned-2m-64b", CPU, 1.1, RATIO),
    Goal("aligned-2m-64b", PEAK, 1.1, RATIO),
    Goal("realloc-20k-42k", CPU, 1.1, RATIO),
    Goal("huge-500g", CPU, 1000, "µs"),
    Goal("huge-500g", PEAK, 3, "MiB"),
    Goal("60k-then-33k", PEAK, 1.25, RATIO),
    Goal("3m", CPU, 1.1, RATIO),
    Goal("33k-64k", CPU, 1.1, RATIO),
    Goal("pipe-mid", CPU, 1.0, RATIO),
    Goal("batch-64b", CPU, 1.0, RATIO),
    Goal("shuffled-4t", PEAK, 1.25, RATIO),
    Goal("handover", PEAK, 1.25, RATIO),
    Goal("usable_size", CPU, 1.0, RATIO),
)


def _cell_of(document: Document, name: str, goal: Goal) -> tuple[Cell, str] | None:
    """hakmem's figure and the best peer's name."""
    if goal.measure in MEASURES:
        found = [
            (row["cells"]["hakmem"][goal.measure], row["best_peer"].get(goal.measure, ""))
            for row in document["benchmarks"]
            if row["name"] == name and "hakmem" in row["cells"]
        ]
    else:
        found = [
            (row["cells"]["hakmem"], row.get("best_peer", ""))
            for table in document["extras"]
            for row in table["rows"]
            if (table["title"], row["label"], row["benchmark"]) == (goal.measure, goal.label, name)
            and "hakmem" in row["cells"]
        ]
    return found[0] if found else None


def _judged(goal: Goal, name: str, cell: Cell, best_peer: str) -> list[Figure]:
    what, unit, divisor = MEASURES.get(goal.measure, (goal.label or goal.measure, goal.unit, 1.0))
    title = f"{name}, {what}"
    if goal.unit != RATIO:
        value = cell["median"] / divisor
        shown = f"{digits(value)} {unit}"
        return [make_figure(title, shown, f"≤ {goal.limit:g} {unit}", value <= goal.limit)]
    if "ratio" not in cell:
        return []
    shown = f"{digits(cell['ratio'])} of {best_peer}"
    return [make_figure(title, shown, f"≤ {goal.limit:.2f} {RATIO}", cell["ratio"] <= goal.limit)]


def case_figures(document: Document) -> list[Figure]:
    """The goals whose cases were run."""
    figures = []
    for goal in GOALS:
        name = f"case-{goal.case}"
        found = _cell_of(document, name, goal)
        figures += _judged(goal, name, *found) if found is not None else []
    return figures
