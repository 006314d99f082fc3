"""The whole campaign: proofs and hakmem's counters first, then interleaved rounds of timed runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from .allocators import Allocator
from .budget import Budget
from .execute import RunError, Sample
from .progress import Step
from .workload import Length, Workload


@dataclass
class Plan:
    """The runs to make."""

    workloads: list[Workload]
    allocators: list[Allocator]
    rounds: int
    minutes: float
    length: Length

    def in_round(self, number: int) -> list[Workload]:
        """Those that take part in round `number`, counted from 0: real programs first, so that they are
        never those for which there was no time."""
        part = [each for each in self.workloads if each.rounds_max is None or number < each.rounds_max]
        return sorted(part, key=lambda each: not each.is_real)

    def expected_seconds(self) -> float:
        """About how long all rounds take, from what the workloads expect of themselves."""
        runs = [each for number in range(self.rounds) for each in self.in_round(number)]
        count = len(self.allocators)
        return sum(each.expected_seconds(self.length) * (1 if each.together else count) for each in runs)


@dataclass
class Outcome:
    """The results, by the names of workload and allocator."""

    samples: dict[tuple[str, str], list[Sample]] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    report_failures: dict[str, str] = field(default_factory=dict)
    rounds: int = 0  # whole ones
    left_out: list[str] = field(default_factory=list)  # workloads for which even one round had no time
    seconds: float = 0.0
    costs: dict[str, float] = field(default_factory=dict)  # seconds of a workload's latest round


def rotated(of: list[Any], by: int) -> list[Any]:
    """The list, begun elsewhere: the first allocator changes from round to round."""
    by %= len(of)
    return of[by:] + of[:by]


def _run(plan: Plan, workload: Workload, allocators: list[Allocator], outcome: Outcome) -> None:
    """One timed run on each of the allocators, at the same time if there are several."""

    def run(allocator: Allocator) -> None:
        key = (workload.name, allocator.name)
        if key in outcome.failures:
            return
        try:
            outcome.samples.setdefault(key, []).append(workload.timed(allocator, plan.length))
        except RunError as error:
            outcome.failures[key] = str(error)

    if len(allocators) > 1:
        with ThreadPoolExecutor(len(allocators)) as runs:
            list(runs.map(run, allocators))  # raises what a run raised
    else:
        for allocator in allocators:
            run(allocator)


def _one_round(plan: Plan, number: int, budget: Budget, outcome: Outcome, step: Step) -> None:
    """Every workload on every allocator, one after the other; who comes first changes each time."""
    for index, workload in enumerate(plan.in_round(number)):
        if number == 0 and budget.over():
            outcome.left_out.append(workload.name)
            continue
        start = budget.elapsed()
        allocators = rotated(plan.allocators, number + index)
        for group in [allocators] if workload.together else [[each] for each in allocators]:
            for allocator in group:
                step(f"round {number + 1}: {workload.name} on {allocator.name}")
            _run(plan, workload, group, outcome)
        budget.note(workload.name, budget.elapsed() - start)


def _proofs(plan: Plan, outcome: Outcome, step: Step) -> None:
    for workload in (each for each in plan.workloads if each.is_real):
        for allocator in plan.allocators:
            step(f"serving library: {workload.name} on {allocator.name}")
            try:
                workload.prove(allocator)
            except RunError as error:
                outcome.failures[workload.name, allocator.name] = str(error)


def _reports(plan: Plan, hakmem: Allocator, outcome: Outcome, step: Step) -> None:
    for workload in (each for each in plan.workloads if not each.is_real):
        step(f"hakmem's counters: {workload.name}")
        try:
            report = workload.report(hakmem, plan.length)
        except RunError as error:
            outcome.report_failures[workload.name] = str(error)
            continue
        if report is not None:
            outcome.reports[workload.name] = report


def step_count(plan: Plan) -> int:
    """How often run_campaign will call `step`, if there is time for all rounds."""
    real = sum(each.is_real for each in plan.workloads)
    runs = real + sum(len(plan.in_round(number)) for number in range(plan.rounds))
    reports = (len(plan.workloads) - real) * any(a.name == "hakmem" for a in plan.allocators)
    return runs * len(plan.allocators) + reports


def run_campaign(plan: Plan, step: Step, budget: Budget | None = None) -> Outcome:
    """Runs the plan.  Calls `step` with a line of text before each run.  Raises BuildError."""
    budget = budget or Budget(plan.minutes)
    outcome = Outcome()
    for workload in plan.workloads:
        workload.prepare(plan.length)
    _proofs(plan, outcome, step)
    for hakmem in (a for a in plan.allocators if a.name == "hakmem"):
        _reports(plan, hakmem, outcome, step)
    for number in range(plan.rounds):
        if number > 0 and not budget.fits(each.name for each in plan.in_round(number)):
            break
        _one_round(plan, number, budget, outcome, step)
        outcome.rounds = number + 1
    outcome.seconds, outcome.costs = budget.elapsed(), budget.costs
    return outcome
