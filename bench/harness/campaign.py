"""The whole campaign: proofs and hakmem's counters first, then pairs of timed runs until ratios are known.

The two runs of a pair share one processor at the same time, and each processor has a pair: they alternate
every few milliseconds, so whatever slows the machine slows both.  Where that would change what is measured
(`alternates` of workload.py) they follow each other, in an order drawn at random, and one run on hakmem is
paired with a run on each peer.  The next pairs are those of one of the rows that need the least time to
become known; real programs count as REAL_WEIGHT times nearer to it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from .allocators import Allocator
from .budget import Budget
from .estimate import PAIRS_MIN, Estimate, estimate
from .execute import RunError, Sample
from .kept import Kept
from .noise import disturbance, watched
from .progress import Step
from .workload import Length, Workload

REAL_WEIGHT = 4.0
CHOICE = 4  # rows that the next block is drawn from, so that no row has all its runs at one time
NOISE = "noise_"  # before the figures of noise in a sample

Block = dict[str, Sample]  # runs that belong together, by allocator


@dataclass
class Plan:
    """The runs to make.  The first allocator is the one that the others are compared with."""

    workloads: Sequence[Workload]
    allocators: list[Allocator]
    minutes: float
    length: Length

    @property
    def reference(self) -> str:
        return self.allocators[0].name

    def length_of(self, workload: Workload) -> Length:
        """Real programs always do their short job: many pairs of short runs tell more than few long ones."""
        return Length(self.length.seconds, quick=True) if workload.is_real else self.length

    def pair_seconds(self, workload: Workload) -> float:
        """About how long a pair takes, from what the workload expects of itself."""
        return workload.expected_seconds(self.length_of(workload)) * (1 if workload.together else 2)

    def turn_seconds(self, workload: Workload) -> float:
        """About how long a pair with each other allocator takes."""
        return self.pair_seconds(workload) * (1 if workload.together else max(1, len(self.allocators) - 1))


def cpu_ns_per_op(sample: Sample) -> float:
    """At least a microsecond a run: the kernel's count of a very short run may be 0, and ratios are made."""
    return max(sample["user_s"] + sample["sys_s"], 1e-6) * 1e9 / sample["ops"]


@dataclass
class Outcome:
    """The results, by the names of workload and allocator."""

    reference: str = "hakmem"
    blocks: dict[str, list[Block]] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    report_failures: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    costs: dict[str, float] = field(default_factory=dict)  # seconds of a pair, by workload
    interrupted: bool = False
    _estimates: dict[str, tuple[int, dict[str, Estimate]]] = field(default_factory=dict)

    def samples(self, row: str, allocator: str) -> list[Sample]:
        return [block[allocator] for block in self.blocks.get(row, []) if allocator in block]

    def estimates(self, row: str) -> dict[str, Estimate]:
        """Each other allocator's processor time over the reference's."""
        blocks = self.blocks.get(row, [])
        count, found = self._estimates.get(row, (0, {}))
        if count != len(blocks):
            found = {
                name: _estimate(blocks, self.reference, name) for name in _compared(blocks, self.reference)
            }
            self._estimates[row] = len(blocks), found
        return found


def _compared(blocks: list[Block], reference: str) -> list[str]:
    return list(
        dict.fromkeys(name for block in blocks if reference in block for name in block if name != reference)
    )


def _estimate(blocks: list[Block], reference: str, other: str) -> Estimate:
    pairs = [(block[reference], block[other]) for block in blocks if reference in block and other in block]
    figures = [list(map(cpu_ns_per_op, samples)) for samples in zip(*pairs, strict=True)]
    return estimate(*figures)


def open_allocators(plan: Plan, workload: Workload, outcome: Outcome) -> list[Allocator]:
    """Those of the row's next block: none when all is known, or no more blocks are worth their time."""
    done = len(outcome.blocks.get(workload.name, []))
    if workload.runs_max is not None and done >= workload.runs_max:
        return []
    known = {name for name, each in outcome.estimates(workload.name).items() if each.is_enough}
    left = [
        a for a in plan.allocators if a.name not in known and (workload.name, a.name) not in outcome.failures
    ]
    others = [a for a in left if a.name != plan.reference]
    alone = len(plan.allocators) == 1 and done < PAIRS_MIN
    return left if others or alone else []


def seconds_left(plan: Plan, workload: Workload, outcome: Outcome) -> float:
    """About how long the row's further pairs take; 0: it is done."""
    allocators = open_allocators(plan, workload, outcome)
    if not allocators:
        return 0.0
    estimates = outcome.estimates(workload.name)
    others = [a.name for a in allocators if a.name != plan.reference] or [plan.reference]
    needed = {name: PAIRS_MIN for name in others}
    needed |= {
        name: max(1, each.pairs_needed - each.pairs) for name, each in estimates.items() if name in needed
    }
    pairs = max(needed.values()) if workload.together else sum(needed.values())
    if workload.runs_max is not None:
        pairs = workload.runs_max * len(others)
    return pairs * outcome.costs.get(workload.name, plan.pair_seconds(workload))


def _nearest(plan: Plan, outcome: Outcome, draw: random.Random) -> Workload | None:
    """The row of the next pairs: each row gets its first ones before any other gets more."""
    left = {each.name: seconds_left(plan, each, outcome) for each in plan.workloads}
    rows = [each for each in plan.workloads if left[each.name] > 0]
    new = [each for each in rows if not outcome.blocks.get(each.name)]
    if new:
        return min(new, key=lambda each: not each.is_real)
    rows.sort(key=lambda each: left[each.name] / (REAL_WEIGHT if each.is_real else 1))
    return draw.choice(rows[:CHOICE]) if rows else None


class _Runs:
    """Makes the blocks of one row after the other."""

    def __init__(self, plan: Plan, outcome: Outcome, step: Step, draw: random.Random) -> None:
        self._plan, self._outcome, self._step, self._draw = plan, outcome, step, draw

    def turn(self, workload: Workload) -> Iterator[tuple[Block, dict[str, str]]]:
        """Blocks with each allocator that is not known yet, and why an allocator has no sample."""
        allocators = open_allocators(self._plan, workload, self._outcome)
        self._draw.shuffle(allocators)
        others = [each for each in allocators if each.name != self._plan.reference]
        if workload.together:
            yield self._at_once(workload, allocators)
        elif not workload.alternates or not others:
            yield self._in_turn(workload, allocators)
        else:
            yield from self._side_by_side(workload, allocators, others)

    def _side_by_side(
        self, workload: Workload, allocators: Sequence[Allocator], others: Sequence[Allocator]
    ) -> Iterator[tuple[Block, dict[str, str]]]:
        processors = list(os.sched_getaffinity(0))
        self._draw.shuffle(processors)

        def bind() -> None:
            os.sched_setaffinity(0, {processors.pop()})  # of this thread, and of those that it starts

        def pair(other: Allocator) -> tuple[Block, dict[str, str]]:
            names = self._plan.reference, other.name
            return self._repeated(workload, [each for each in allocators if each.name in names])

        with ThreadPoolExecutor(len(processors), initializer=bind) as runs:
            yield from runs.map(pair, others)

    def _timed(
        self, workload: Workload, allocator: Allocator, block: Block, failures: dict[str, str]
    ) -> None:
        self._step(f"{workload.name}: {allocator.name}")
        try:
            block[allocator.name] = workload.timed(allocator, self._plan.length_of(workload))
        except RunError as error:
            failures[allocator.name] = str(error)

    def _at_once(self, workload: Workload, allocators: Sequence[Allocator]) -> tuple[Block, dict[str, str]]:
        block, failures = Block(), dict[str, str]()
        with ThreadPoolExecutor(len(allocators)) as runs:
            made = [runs.submit(self._timed, workload, each, block, failures) for each in allocators]
            for each in made:
                each.result()  # raises what a run raised
        return block, failures

    def _in_turn(self, workload: Workload, allocators: Sequence[Allocator]) -> tuple[Block, dict[str, str]]:
        block, failures = Block(), dict[str, str]()
        for allocator in allocators:
            run, failed = self._repeated(workload, [allocator])
            block |= run
            failures |= failed
        return block, failures

    def _repeated(self, workload: Workload, allocators: list[Allocator]) -> tuple[Block, dict[str, str]]:
        """Makes disturbed runs once more, and notes in each sample what there was of disturbances."""
        judged = [each for each in allocators if each.name != self._plan.reference] or allocators
        history = [_noise_of(each) for each in self._outcome.samples(workload.name, judged[0].name)]
        (block, failures), noise = watched(lambda: self._at_once(workload, allocators))
        is_disturbed = workload.runs_max is None and disturbance(noise, history) != ""
        if is_disturbed:
            (block, failures), noise = watched(lambda: self._at_once(workload, allocators))
        noted = {f"{NOISE}{key}": value for key, value in noise.items()} | {"repeated": float(is_disturbed)}
        return {name: {**sample, **noted} for name, sample in block.items()}, failures


def _noise_of(sample: Sample) -> Sample:
    return {key.removeprefix(NOISE): value for key, value in sample.items() if key.startswith(NOISE)}


def _proofs(plan: Plan, outcome: Outcome, step: Step, kept: Kept) -> None:
    for workload in (each for each in plan.workloads if each.is_real):
        for allocator in plan.allocators:
            if outcome.samples(workload.name, allocator.name):
                continue  # proven before it was timed
            step(f"serving library: {workload.name} on {allocator.name}")
            try:
                workload.prove(allocator)
            except RunError as error:
                outcome.failures[workload.name, allocator.name] = str(error)
                kept.add_failure(workload.name, allocator.name, str(error))


def _reports(plan: Plan, hakmem: Allocator, outcome: Outcome, step: Step, kept: Kept) -> None:
    for workload in (each for each in plan.workloads if not each.is_real):
        if workload.name in outcome.reports:
            continue
        step(f"hakmem's counters: {workload.name}")
        try:
            report = workload.report(hakmem, plan.length)
        except RunError as error:
            outcome.report_failures[workload.name] = str(error)
            continue
        if report is not None:
            outcome.reports[workload.name] = report
            kept.add_report(workload.name, report)


def _pairs(plan: Plan, outcome: Outcome, step: Step, budget: Budget, kept: Kept, draw: random.Random) -> None:
    runs = _Runs(plan, outcome, step, draw)
    while not budget.over() and (workload := _nearest(plan, outcome, draw)) is not None:
        start, pairs = budget.elapsed(), 0
        done = outcome.blocks.setdefault(workload.name, [])
        for block, failures in runs.turn(workload):
            for name, why in failures.items():
                outcome.failures[workload.name, name] = why
                kept.add_failure(workload.name, name, why)
            done.append(block)
            kept.add_block(workload.name, block)
            pairs += 1 if workload.together else max(1, len(block) - 1)
        outcome.costs[workload.name] = (budget.elapsed() - start) / pairs


def uncertain(plan: Plan, outcome: Outcome) -> str:
    """A sentence about what is not known yet."""
    found = {each.name: outcome.estimates(each.name) for each in plan.workloads}
    ratios = [(row, name, each) for row, some in found.items() for name, each in some.items()]
    open_rows = [each.name for each in plan.workloads if seconds_left(plan, each, outcome) > 0]
    known = sum(each.is_known for _, _, each in ratios)
    if not open_rows:
        return f"{known} of {len(ratios)} ratios are known; no further block would tell more"
    minutes = sum(seconds_left(plan, each, outcome) for each in plan.workloads) / 60
    return (
        f"{known} of {len(ratios)} ratios are known. The same command goes on, for about {minutes:.0f} "
        f"minutes until all are; still uncertain: {', '.join(open_rows)}"
    )


def run_campaign(
    plan: Plan, step: Step, budget: Budget | None = None, kept: Kept | None = None, seed: int | None = None
) -> Outcome:
    """Runs the plan, going on from what was kept, until all is known, the time is over, or Ctrl-C.  Calls
    `step` with a line of text before each run.  Raises BuildError."""
    budget, kept = budget or Budget(plan.minutes), kept or Kept()
    outcome = Outcome(plan.reference)
    kept.read_into(outcome, {each.name for each in plan.workloads})
    for workload in plan.workloads:
        workload.prepare(plan.length_of(workload))
    try:
        _proofs(plan, outcome, step, kept)
        for hakmem in (a for a in plan.allocators if a.name == "hakmem"):
            _reports(plan, hakmem, outcome, step, kept)
        _pairs(plan, outcome, step, budget, kept, random.Random(seed))
    except KeyboardInterrupt:
        outcome.interrupted = True
    outcome.seconds = budget.elapsed()
    return outcome
