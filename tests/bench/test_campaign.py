"""Rounds: their order, their number, and the time they may take."""

from collections.abc import Callable
from typing import Any

from harness.budget import AFTERWARDS_SECONDS, Budget
from harness.campaign import run_campaign, step_count

Make = Callable[..., Any]
NAMES = ("hakmem", "glibc", "mimalloc")


def ignore(_line: str) -> None:
    """Shows no progress."""


def test_the_order_rotates(plan_of: Make, fake: Make, sample: Make) -> None:
    first, second = (fake(name, **{who: sample(1) for who in NAMES}) for name in ("a", "b"))
    outcome = run_campaign(plan_of(first, second, rounds=2), ignore)
    assert first.runs == ["hakmem", "glibc", "mimalloc", "glibc", "mimalloc", "hakmem"]
    assert second.runs == ["glibc", "mimalloc", "hakmem", "mimalloc", "hakmem", "glibc"]
    assert outcome.rounds == 2


def test_rounds_max(plan_of: Make, fake: Make, sample: Make) -> None:
    often = fake("often", **{who: sample(1) for who in NAMES})
    once = fake("once", rounds_max=1, **{who: sample(1) for who in NAMES})
    steps: list[str] = []
    plan = plan_of(often, once, rounds=3)
    run_campaign(plan, steps.append)
    assert (len(often.runs), len(once.runs)) == (9, 3)
    assert len(steps) == step_count(plan)


def test_a_failure_ends_that_pair_alone(plan_of: Make, fake: Make, sample: Make) -> None:
    outcome = run_campaign(plan_of(fake("a", hakmem=sample(1), glibc=sample(1))), ignore)
    assert outcome.failures == {("a", "mimalloc"): "crashed"}
    assert len(outcome.samples["a", "hakmem"]) == 2


def test_what_is_not_proven_is_not_timed(plan_of: Make, fake: Make, sample: Make) -> None:
    real = fake("real-a", is_real=True, hakmem=sample(1), glibc=sample(1, unproven=1), mimalloc=sample(1))
    outcome = run_campaign(plan_of(real), ignore)
    assert outcome.failures == {("real-a", "glibc"): "served by another"}
    assert "glibc" not in real.runs


def campaign_with(seconds_a_run: float, plan_of: Make, fake: Make, sample: Make) -> Any:  # noqa: ANN401
    """Two workloads, five rounds, a limit of 60 seconds for the rounds."""
    passed: list[float] = []
    workloads = [fake(name, **{who: sample(1) for who in NAMES}) for name in ("a", "b")]
    for each in workloads:
        each.spend = lambda: passed.append(seconds_a_run)
    budget = Budget((60 + AFTERWARDS_SECONDS) / 60, lambda: sum(passed))
    return run_campaign(plan_of(*workloads, rounds=5), ignore, budget)


def test_only_rounds_that_fit(plan_of: Make, fake: Make, sample: Make) -> None:
    assert campaign_with(2.0, plan_of, fake, sample).rounds == 5
    assert campaign_with(3.0, plan_of, fake, sample).rounds == 3
    assert campaign_with(9.0, plan_of, fake, sample).rounds == 1
    assert campaign_with(30.0, plan_of, fake, sample).left_out == ["b"], "no time even for one round"
