"""Blocks: their order, their number, the time they may take, and going on from what was kept."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import versus
from harness.allocators import Allocator
from harness.budget import AFTERWARDS_SECONDS, Budget
from harness.campaign import Plan, run_campaign, uncertain
from harness.estimate import PAIRS_MIN
from harness.kept import Kept
from harness.workload import Length

Make = Callable[..., Any]
NAMES = ("hakmem", "glibc", "mimalloc")


def ignore(_line: str) -> None:
    """Shows no progress."""


@pytest.fixture
def even(fake: Make, sample: Make) -> Make:
    """even(name) -> a workload that takes the same time on all allocators."""
    return lambda name, **more: fake(name, **{who: sample(1) for who in NAMES}, **more)


def in_blocks(runs: list[str]) -> list[list[str]]:
    return [runs[at : at + len(NAMES)] for at in range(0, len(runs), len(NAMES))]


def test_blocks_have_each_allocator_once_in_a_drawn_order(plan_of: Make, even: Make) -> None:
    row = even("a")
    outcome = run_campaign(plan_of(row), ignore, seed=1)
    blocks = in_blocks(row.runs)
    assert len(blocks) == PAIRS_MIN, "equal times are known as soon as intervals are trusted"
    assert all(sorted(block) == sorted(NAMES) for block in blocks)
    assert len({block[0] for block in blocks}) == len(NAMES)
    assert all(each.is_known and each.ratio == pytest.approx(1) for each in outcome.estimates("a").values())


def test_the_runs_of_a_pair_share_a_processor_at_the_same_time(plan_of: Make, even: Make) -> None:
    row, meeting, found = even("a"), threading.Barrier(2, timeout=30), set[frozenset[int]]()

    def meet() -> None:
        found.add(frozenset(os.sched_getaffinity(0)))
        meeting.wait()

    row.alternates, row.spend, ours = True, meet, os.sched_getaffinity(0)
    outcome = run_campaign(plan_of(row), ignore, seed=1)
    assert os.sched_getaffinity(0) == ours
    assert all(len(each) == 1 for each in found)
    assert [sorted(block) for block in outcome.blocks["a"]].count(["hakmem", "mimalloc"]) == PAIRS_MIN
    assert row.runs.count("hakmem") == 2 * PAIRS_MIN


def test_further_blocks_have_only_what_is_uncertain(plan_of: Make, even: Make) -> None:
    row = even("a")
    disturbed = iter(range(10**6))
    row.noise = lambda: 1.5 if row.runs[-1] == "glibc" and next(disturbed) % 2 else 1.0
    passed = lambda: 0.1 * len(row.runs)  # noqa: E731
    run_campaign(plan_of(row), ignore, Budget((30 + AFTERWARDS_SECONDS) / 60, passed), seed=1)
    assert row.runs.count("mimalloc") == PAIRS_MIN
    assert row.runs.count("glibc") == row.runs.count("hakmem") > 10 * PAIRS_MIN


def test_runs_max(plan_of: Make, even: Make) -> None:
    often, once = even("often"), even("once", runs_max=1)
    outcome = run_campaign(plan_of(often, once), ignore)
    assert (len(often.runs), len(once.runs)) == (3 * PAIRS_MIN, 3)
    assert "2 of 4 ratios are known; no further block" in uncertain(plan_of(often, once), outcome)


def test_a_failure_ends_that_pair_alone(plan_of: Make, fake: Make, sample: Make) -> None:
    outcome = run_campaign(plan_of(fake("a", hakmem=sample(1), glibc=sample(1))), ignore)
    assert outcome.failures == {("a", "mimalloc"): "crashed"}
    assert len(outcome.samples("a", "hakmem")) == PAIRS_MIN


def test_what_is_not_proven_is_not_timed(plan_of: Make, fake: Make, sample: Make) -> None:
    real = fake("real-a", is_real=True, hakmem=sample(1), glibc=sample(1, unproven=1), mimalloc=sample(1))
    outcome = run_campaign(plan_of(real), ignore)
    assert outcome.failures == {("real-a", "glibc"): "served by another"}
    assert "glibc" not in real.runs


@pytest.mark.parametrize(("seconds_a_run", "blocks"), [(0.5, 2 * PAIRS_MIN), (9.0, 3), (30.0, 1)])
def test_a_budget(plan_of: Make, even: Make, seconds_a_run: float, blocks: int) -> None:
    """A block is not begun after the time, and real programs come first."""
    passed: list[float] = []
    real, other = even("real-b", is_real=True), even("a")
    for each in (real, other):
        each.spend = lambda: passed.append(seconds_a_run)
    plan = plan_of(other, real)
    outcome = run_campaign(plan, ignore, Budget((60 + AFTERWARDS_SECONDS) / 60, lambda: sum(passed)), seed=1)
    assert sum(map(len, outcome.blocks.values())) == blocks
    assert "real-b" in outcome.blocks
    assert ("goes on" in uncertain(plan, outcome)) == (blocks < PAIRS_MIN)


def test_stopped_and_resumed(plan_of: Make, even: Make, tmp_path: Path) -> None:
    row = even("a")

    def stop() -> None:
        if len(row.runs) == 7:
            raise KeyboardInterrupt

    row.spend = stop
    kept = Kept(tmp_path / "kept.jsonl")
    assert run_campaign(plan_of(row), ignore, kept=kept).interrupted
    with (tmp_path / "kept.jsonl").open("a") as out:
        out.write('{"row": "a", "blo')  # a line that was not finished
    row.spend = lambda: None
    outcome = run_campaign(plan_of(row), ignore, kept=kept)
    assert len(outcome.blocks["a"]) == PAIRS_MIN
    assert len(row.runs) == 3 * PAIRS_MIN + 1, "only the block that was cut off is made again"


def test_two_builds(fake: Make, sample: Make) -> None:
    """A row that is not known counts in no mean of times."""
    sides = [Allocator(side, None) for side in versus.SIDES]
    known, other = (fake(name, A=sample(10, 1000), B=sample(12, 900)) for name in ("known", "other"))
    plan = Plan([known, other], sides, minutes=1, length=Length(0.1, quick=True))
    outcome = run_campaign(plan, ignore)
    outcome.blocks["other"] = outcome.blocks["other"][:2]
    (_, time, peak), (_, unknown, _) = versus.compared(plan, outcome)
    assert (time.ratio, peak.ratio, time.is_known, unknown.is_known) == (
        pytest.approx(1.2),
        pytest.approx(0.9),
        True,
        False,
    )
    cells = [list(column.cells) for column in versus.to_table(plan, outcome).columns]
    assert cells[0][-1] == "geometric mean, time of 1 of 2"
    assert cells[1] == ["1.200", "not known: 1.200", "1.200"]
    assert versus.judged(plan, outcome, 20.0)[1]
    assert not versus.judged(plan, outcome, 3.0)[1]
