"""Which cases run, and what each costs.

`make test-all` runs all.  With --few, as `make test` has it, a few cases of a test with many parameters run:
the first, and others spread over the rest, so that each parameter has several of its values.  The choice is
the same on every machine.  Of a test marked long(reason, keep=1) that many run, and without `keep` none.

Each test leaves its processor time, that of its programs included, in the report: the property `cpu_s`.
A fixture counts for the first test that asks for it."""

import os
from collections import defaultdict
from collections.abc import Iterator

import pytest

CASES_MAX = 3
# Steps of the golden section do not fall into step with the number of a parameter's values.
GOLDEN_SECTION = 0.618034

BEGAN_S: dict[str, float] = {}


def spread(count: int, most: int) -> set[int]:
    """The places of at most `most` cases among `count`."""
    chosen = dict.fromkeys(int(count * (step * GOLDEN_SECTION % 1)) for step in range(count))
    return set(list(chosen)[:most])


def most_cases(item: pytest.Item) -> int:
    """The number of cases like this one that run."""
    mark = item.get_closest_marker("long")
    return CASES_MAX if mark is None else mark.kwargs.get("keep", 0)


def keep_few(items: list[pytest.Item]) -> list[pytest.Item]:
    """In the order that they had."""
    cases: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0], most_cases(item)].append(item)
    kept = {id(of[place]) for (_, most), of in cases.items() for place in spread(len(of), most)}
    return [item for item in items if id(item) in kept]


def used_s() -> float:
    """Processor time of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    BEGAN_S[item.nodeid] = used_s()
    yield


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    if call.when == "teardown":
        item.user_properties.append(("cpu_s", f"{used_s() - BEGAN_S.pop(item.nodeid):.3f}"))
    yield
