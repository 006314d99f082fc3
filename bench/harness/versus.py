"""Two builds of one allocator, `bench/run --pairs A.so B.so`, and the proof of the estimator.

`bench/run --self-test` compares a build with its own copy, then with a copy whose programs spin at the end
for 3 % of their time, while two busy loops run beside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean

from rich.table import Table

from .allocators import Allocator, copy_anew
from .build import build_launcher
from .campaign import Outcome, Plan
from .estimate import PAIRS_MIN, Estimate, estimate
from .paths import OUTPUT

FOLDER = OUTPUT / "pairs"
SIDES = ("A", "B")
SPINS = (0.0, 3.0)  # percent
CLOSE, RIGHT = 0.015, 0.95
LOOPS = 2


def sides(libraries: tuple[Path, Path]) -> list[Allocator]:
    """Copies with paths of the same length: neither a build in between nor the stack's place disturbs."""
    pairs = zip(SIDES, libraries, strict=True)
    return [Allocator(side, copy_anew(library, FOLDER / side / "libhakmem.so")) for side, library in pairs]


def spinning(allocator: Allocator, percent: float) -> Allocator:
    wrapper = (str(build_launcher()), "-i", "/dev/stdin", "-s", f"{percent:g}")
    return replace(allocator, wrapper=wrapper)


@contextmanager
def busy_loops() -> Iterator[None]:
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command) for _ in range(LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def judged(plan: Plan, outcome: Outcome, percent: float) -> tuple[str, bool]:
    """Whether at least 19 of 20 rows were found to differ by `percent`."""
    ratios = [each.ratio for _, each, _ in compared(plan, outcome) if each.is_known]
    right = sum(abs(ratio / (1 + percent / 100) - 1) <= CLOSE for ratio in ratios)
    is_good = bool(ratios) and right >= len(ratios) * RIGHT
    sentence = (
        f"{1 + percent / 100:.2f} ±{CLOSE:.1%} was found in {right} of {len(ratios)} known rows "
        f"({len(plan.workloads) - len(ratios)} not known): {'good' if is_good else 'wrong'}"
    )
    return sentence, is_good


def interval(each: Estimate) -> str:
    """Nothing of too few pairs: the bootstrap would show an interval too narrow."""
    return f"{each.low:.3f} to {each.high:.3f}" if each.pairs >= PAIRS_MIN else ""


def compared(plan: Plan, outcome: Outcome) -> Iterator[tuple[str, Estimate, Estimate]]:
    """The rows that ran on both, with the ratios of their times and of their peaks."""
    for each in plan.workloads:
        time = outcome.estimates(each.name).get(SIDES[1])
        if time is not None:
            ours, theirs = ([s["peak_rss_kib"] for s in outcome.samples(each.name, side)] for side in SIDES)
            count = min(len(ours), len(theirs))
            yield each.name, time, estimate(ours[:count], theirs[:count])


def to_table(plan: Plan, outcome: Outcome) -> Table:
    """A row that is not known counts in no mean of time."""
    table = Table(title="Processor time and peak memory, B / A", title_justify="left")
    table.add_column("row", no_wrap=True)
    for head in ("time", "95 % interval", "pairs", "repeated", "peak", "95 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    rows = list(compared(plan, outcome))
    for name, each, peak in rows:
        repeated = sum(int(s.get("repeated", 0)) for side in SIDES for s in outcome.samples(name, side))
        time = f"{each.ratio:.3f}" if each.is_known else f"not known: {each.ratio:.3f}"
        cells = (time, interval(each), str(each.pairs), str(repeated), f"{peak.ratio:.3f}", interval(peak))
        table.add_row(name, *cells)
    if rows:
        known = [each.ratio for _, each, _ in rows if each.is_known]
        table.add_section()
        mean = f"{geometric_mean(known):.3f}" if known else ""
        peaks = geometric_mean(peak.ratio for _, _, peak in rows)
        table.add_row(
            f"geometric mean, time of {len(known)} of {len(rows)}", mean, "", "", "", f"{peaks:.3f}"
        )
    return table
