"""The command line of lab/run."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from harness.arguments import IS_QUICK, positive, positive_number
from harness.build import BuildError
from harness.execute import RunError
from harness.machine import describe_machine
from harness.progress import steps
from harness.tables import output_console
from rich.table import Table

from .build import OUTPUT, build
from .chart import draw
from .execute import run
from .figures import Samples, cell
from .page import write_page
from .subjects import Subject, find_subjects
from .tables import COUNTER_HEADS, SPEED_HEADS, VERDICT_HEADS, all_rows, own_baseline_lines, verdict_row
from .verdicts import Cells, judge, own_baseline

THREADS = (1, 2, 4, 8)
FULL_ROUNDS, FULL_SECONDS = 5, 0.3
QUICK_ROUNDS, QUICK_SECONDS = 2, 0.1
WARMUP_PART = 0.5  # of the seconds
COLOURS = {"reproduced": "green", "not reproduced": "yellow", "hope met": "green"}


@dataclass(frozen=True)
class Plan:
    """How long, how often; every (subject, threads) once a round."""

    rounds: int
    seconds: float
    blocks: int = 1000

    @property
    def warmup_ms(self) -> int:
        """The same load before the clock starts."""
        return round(1000 * WARMUP_PART * self.seconds)


def _parse(arguments: list[str]) -> Plan:
    parser = argparse.ArgumentParser(
        prog="lab/run",
        description="Re-runs the experiments that led to hakmem's design, and judges the notes' findings.",
        epilog="Writes build/lab/report.html, chart.png and results.json; prints the tables.",
    )
    add = parser.add_argument
    add("--rounds", type=positive, metavar="N", help=f"rounds ({FULL_ROUNDS}; quick {QUICK_ROUNDS})")
    add("--seconds", type=positive_number("seconds", 30), metavar="S",
        help=f"length of a run ({FULL_SECONDS:g}; quick {QUICK_SECONDS:g})")  # fmt: skip
    add("--quick", action="store_true", default=IS_QUICK,
        help="short runs, less certain verdicts; also QUICK=1 in the environment")  # fmt: skip
    options = parser.parse_args(arguments)
    return Plan(
        rounds=options.rounds or (QUICK_ROUNDS if options.quick else FULL_ROUNDS),
        seconds=options.seconds or (QUICK_SECONDS if options.quick else FULL_SECONDS),
    )


def _measure(program: Path, plan: Plan, subjects: list[Subject]) -> Samples:
    """Rounds are interleaved, and each begins with another subject."""
    samples: Samples = {(s.name, t): [] for s, t in product(subjects, THREADS)}
    more = ("--blocks", str(plan.blocks), "--warmup", str(plan.warmup_ms))
    with steps(plan.rounds * len(samples)) as step:
        for number, threads in product(range(plan.rounds), THREADS):
            first = number * 5 % len(subjects)  # another one in each round
            for subject in subjects[first:] + subjects[:first]:
                step(f"round {number + 1}: {subject.name}, {threads} threads")
                sample = run(program, subject, threads, plan.seconds, *more)
                samples[subject.name, threads].append(sample)
    return samples


def _cells(samples: Samples, subjects: list[Subject]) -> Cells:
    counting = {s.name for s in subjects if not s.is_reference} | {"hakmem"}
    return {key: cell(of_cell, key[0] in counting) for key, of_cell in samples.items()}


def _table(title: str, heads: tuple[str, ...], rows: list[list[str]], numbers_from: int) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    for at, head in enumerate(heads):
        table.add_column(head, justify="right" if at >= numbers_from else "left")
    for at, row in enumerate(rows):
        table.add_row(*row, end_section=at + 1 < len(rows) and rows[at + 1][0] != row[0])
    return table


def _show(rows: list[list[str]], verdicts: list[list[str]], lines: list[str]) -> None:
    console = output_console()
    heads = ("strategy", *SPEED_HEADS, *COUNTER_HEADS)
    console.print(_table("Figures (/M: for a million operations)", heads, rows, 1))
    coloured = [[*r[:3], f"[{COLOURS.get(r[3], 'default')}]{r[3]}[/]", r[4]] for r in verdicts]
    console.print(_table("Findings of the notes, seen again", VERDICT_HEADS, coloured, len(VERDICT_HEADS)))
    for line in lines:
        console.print(line, highlight=False)
    console.print("build/lab/report.html, build/lab/chart.png, build/lab/results.json", highlight=False)


def main(arguments: list[str]) -> int:
    """Returns the exit status; leaves by SystemExit(2) when the command line is wrong."""
    plan = _parse(arguments)
    machine = describe_machine()  # first: later the load would be our own
    subjects = find_subjects()
    try:
        samples = _measure(build(), plan, subjects)
    except (BuildError, RunError) as error:
        print(f"lab/run: {error}", file=sys.stderr)
        return 1
    cells = _cells(samples, subjects)
    verdicts, ratios = judge(samples, cells), own_baseline(samples)
    rows, lines = all_rows(cells), own_baseline_lines(ratios)
    result = {
        "machine": machine,
        "plan": asdict(plan),
        "verdicts": [verdict.as_json() for verdict in verdicts],
        "own_baseline": [{**asdict(r), "is_met": r.is_met} for r in ratios],
        "cells": [{"name": n, "threads": t, **value.as_json()} for (n, t), value in cells.items()],
    }
    (OUTPUT / "results.json").write_text(json.dumps(result, indent=1))
    draw(cells, OUTPUT / "chart.png")
    write_page(
        OUTPUT / "report.html", OUTPUT / "chart.png", plan=plan, machine=machine, own_baseline=lines,
        verdict_heads=VERDICT_HEADS, verdicts=[verdict_row(v) for v in verdicts],
        heads=(*SPEED_HEADS, *COUNTER_HEADS), rows=rows,
    )  # fmt: skip
    _show(rows, [verdict_row(verdict) for verdict in verdicts], lines)
    return 0
