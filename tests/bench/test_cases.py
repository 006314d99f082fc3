"""Cases: rows beside the loads, with goals of their own, some of them run on all allocators at once."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from harness.campaign import run_campaign
from harness.cases import CASES
from harness.goals import GOALS
from harness.selection import ALL, select
from harness.workload import CASE, Length

Make = Callable[..., Any]
NAMES = ("hakmem", "glibc", "mimalloc")


def ignore(_line: str) -> None:
    """Shows no progress."""


def test_cases_are_chosen_by_their_name() -> None:
    chosen, unknown = select(["case"])
    assert chosen == list(CASES)
    assert not unknown
    assert len({each.name for each in ALL}) == len(ALL)


def test_a_quick_campaign_has_cases_only_when_asked_for() -> None:
    everything, quick = (select([], quick=quick)[0] for quick in (False, True))
    assert [each for each in everything if each not in quick] == list(CASES)
    assert [each.name for each in select(["case-aligned-2m"], quick=True)[0]] == ["case-aligned-2m"]


def test_every_goal_is_of_a_case() -> None:
    assert {f"case-{goal.case}" for goal in GOALS} <= {each.name for each in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_quick_run_asks_for_less(case: Any) -> None:  # noqa: ANN401
    """A quick run does a part of a fixed amount of work; the others run for the time of the harness."""
    full, quick = (
        case.command(length.seconds, length.quick) for length in (Length(0.4, False), Length(0.1, True))
    )
    assert full[:-1] == quick[:-1]
    assert float(quick[-1]) < float(full[-1])


def test_together(plan_of: Make, fake: Make, sample: Make) -> None:
    """All allocators are at it at the same time: none gets on before the last has begun."""
    meeting = threading.Barrier(len(NAMES), timeout=30)
    case = fake("case-a", **{who: sample(1) for who in NAMES})
    case.together, case.spend = True, meeting.wait
    case.runs_max = 1
    outcome = run_campaign(plan_of(case), ignore)
    assert sorted(case.runs) == sorted(NAMES)
    assert not outcome.failures
    case.spend = lambda: None
    del case.samples["mimalloc"]
    outcome = run_campaign(plan_of(case), ignore)
    assert outcome.failures == {("case-a", "mimalloc"): "crashed"}
    assert len(outcome.samples("case-a", "hakmem")) == 1


def as_case(workload: Any) -> Any:  # noqa: ANN401
    workload.is_case = True
    return workload


def test_cases_are_no_part_of_the_means_of_loads(document_of: Make, fake: Make, sample: Make) -> None:
    load = fake("json", **{who: sample(10) for who in NAMES})
    case = as_case(fake("case-x", hakmem=sample(500), glibc=sample(10), mimalloc=sample(10)))
    document = document_of(load, case)
    assert document["geometric_means"]["all loads"]["cpu_ns_per_op"]["hakmem"] == pytest.approx(1.0)
    assert document["geometric_means"][CASE]["cpu_ns_per_op"]["hakmem"] == pytest.approx(50.0)
    verdicts = {figure["name"]: figure["met"] for figure in document["targets"]}
    assert verdicts["Time, rows above 1.10 of the best peer"]


@pytest.mark.parametrize(("rss_mib", "cpu_ns", "met"), [(19, 900e3, True), (21, 1100e3, False)])
def test_goals(document_of: Make, fake: Make, sample: Make, rss_mib: int, cpu_ns: float, met: bool) -> None:
    server = as_case(fake("case-server-20", hakmem=sample(1, rss_idle_kib=rss_mib * 1024)))
    worst = as_case(fake("case-worst_call-own", hakmem=sample(1, worst_cpu_ns=cpu_ns)))
    usable = as_case(fake("case-usable_size", hakmem=sample(9 if met else 11), glibc=sample(10)))
    figures = {figure["name"]: figure for figure in document_of(server, worst, usable)["targets"]}
    assert figures["case-server-20, RSS after idle"]["met"] is met
    assert figures["case-worst_call-own, processor time"]["met"] is met
    assert figures["case-usable_size, processor time of an operation"]["met"] is met
    assert "RSS after idle" not in figures, "cases have goals of their own"
