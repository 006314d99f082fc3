"""The comparison of a replay as a table and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple
from typing import Any

from rich.console import Console

from hakmem.base.sizes import bytes_text, count_text
from hakmem.launch.replaying import ALL_BYTES, Fidelity, Result
from hakmem.trace.figures import NS_PER_S
from hakmem.views.screen import Sheet
from hakmem.views.trace_text import time_text

NO_SAMPLES = "the trace has no samples of the process's memory: how close the replay is cannot be told"
GOALS = {"peak RSS": 3, "mean RSS": 5, "refills": 5, "remote frees": 5}
FIGURES: dict[str, tuple[str, Callable[[float], str]]] = {
    "seconds": ("time in malloc", lambda seconds: time_text(max(0.0, seconds) * NS_PER_S)),
    "peak_bytes": ("peak RSS", bytes_text),
    "mean_bytes": ("mean RSS", bytes_text),
    "idle_bytes": ("RSS after idling", bytes_text),
    "faults": ("page faults", count_text),
}


def fidelity_text(found: Fidelity | None, hakmem: Result) -> str:
    late, latest = (time_text(hakmem.median(name)) for name in ("late_ns", "latest_ns"))
    lateness = f"the replay was {late} late on average, {latest} at most"
    if found is None:
        return f"{NO_SAMPLES}\n{lateness}"
    errors = (
        f"{name} {100 * error:+.1f} % (goal: {goal} %)"
        for (name, goal), error in zip(GOALS.items(), astuple(found), strict=True)
        if error is not None
    )
    return f"hakmem replayed against hakmem recorded: {', '.join(errors)}\n{lateness}"


def written_notes(count: int) -> list[str]:
    """How blocks were written, unless as a whole."""
    if count == ALL_BYTES:
        return []
    return [f"blocks were written up to {bytes_text(count)} each: that comes closest to the recorded memory"]


def _cell(result: Result, first: Result, name: str) -> str:
    value, base = result.median(name), first.median(name)
    ratio = "" if result is first or base <= 0 else f" ×{value / base:.2f}"
    return f"{FIGURES[name][1](value)} ±{100 * abs(result.spread(name)):.0f} %{ratio}"


def print_results(console: Console, results: Sequence[Result]) -> None:
    """Medians, half the range as a percentage, and ratios to the first."""
    rows = [
        (result.contender.name, *(_cell(result, results[0], name) for name in FIGURES)) for result in results
    ]
    console.print(Sheet("", ("<malloc", *(title for title, _ in FIGURES.values())), rows))


def results_json(results: Sequence[Result], found: Fidelity | None, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "error": asdict(found) if found else None,
        "notes": list(notes),
        "mallocs": {
            result.contender.name: {name: result.median(name) for name in FIGURES}
            | {"rounds": [asdict(one) for one in result.rounds]}
            for result in results
        },
    }
