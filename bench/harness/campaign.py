"""The whole campaign: interleaved rounds of timed runs, then one reported run of hakmem a benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .allocators import Allocator
from .build import build_program
from .execute import RunError, Sample, reported_run, timed_run
from .suite import Benchmark


@dataclass
class Plan:
    """What to run."""

    benchmarks: list[Benchmark]
    allocators: list[Allocator]
    rounds: int
    seconds: float
    quick: bool


@dataclass
class Outcome:
    """What came of it, by the names of benchmark and allocator."""

    samples: dict[tuple[str, str], list[Sample]] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    report_failures: dict[str, str] = field(default_factory=dict)


def _rotated(allocators: list[Allocator], by: int) -> list[Allocator]:
    by %= len(allocators)
    return allocators[by:] + allocators[:by]


def _one_round(plan: Plan, number: int, outcome: Outcome, step: Callable[[str], None]) -> None:
    """Every benchmark on every allocator, one after the other; who comes first changes each time."""
    for index, bench in enumerate(plan.benchmarks):
        executable = build_program(bench.program)
        arguments = bench.command(plan.seconds, plan.quick)
        for allocator in _rotated(plan.allocators, number + index):
            key = (bench.name, allocator.name)
            step(f"round {number + 1}: {bench.name} on {allocator.name}")
            if key in outcome.failures:
                continue
            try:
                outcome.samples.setdefault(key, []).append(timed_run(executable, arguments, allocator))
            except RunError as error:
                outcome.failures[key] = str(error)


def _reports(plan: Plan, hakmem: Allocator, outcome: Outcome, step: Callable[[str], None]) -> None:
    for bench in plan.benchmarks:
        step(f"hakmem's counters: {bench.name}")
        seconds = plan.seconds if plan.quick else (bench.report_seconds or plan.seconds)
        arguments = bench.command(seconds, plan.quick)
        try:
            outcome.reports[bench.name] = reported_run(build_program(bench.program), arguments, hakmem)
        except RunError as error:
            outcome.report_failures[bench.name] = str(error)


def step_count(plan: Plan) -> int:
    """How often run_campaign will call `step`."""
    runs = len(plan.benchmarks) * len(plan.allocators) * plan.rounds
    return runs + len(plan.benchmarks) * any(a.name == "hakmem" for a in plan.allocators)


def run_campaign(plan: Plan, step: Callable[[str], None]) -> Outcome:
    """Runs the plan.  Calls `step` with a line of text before each run."""
    outcome = Outcome()
    for bench in plan.benchmarks:
        build_program(bench.program)
    for number in range(plan.rounds):
        _one_round(plan, number, outcome, step)
    for hakmem in (a for a in plan.allocators if a.name == "hakmem"):
        _reports(plan, hakmem, outcome, step)
    return outcome
