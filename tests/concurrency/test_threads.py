"""Threads that come and go, and what they leave behind."""

from pathlib import Path

import pytest
from modes import assert_clean, assert_silent
from results import Run

HERE = Path(__file__).resolve().parent
EXIT_ROUNDS = 20


@pytest.mark.long("5 seconds; test_program has shorter rows of threads")
@pytest.mark.parametrize("mode", ["preload", "static"])
def test_100000_threads_in_a_row(mode: str, run_program: Run) -> None:
    result = run_program(HERE / "threads_in_a_row.c", mode)
    assert_clean(result)
    (report,) = result.stats
    counters = report["counters"]
    assert counters["unstable_heaps_created"] < 100, "heaps of ended threads are used again"
    assert counters["unstable_heaps_recycled"] > 90000


@pytest.mark.long("2 seconds each")
@pytest.mark.long("2 seconds each", keep=3)
@pytest.mark.parametrize("mode", ["preload", "preload-debug", "static"])
@pytest.mark.parametrize(
    "program",
    ["blocks_outlive_thread.c", "key_destructors.c", "thread_local_destructors.cc", "producer_consumer.c"],
)
def test_program(program: str, mode: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / program, mode))


@pytest.mark.parametrize(
    ("mode", "harden", "rounds"),
    [
        ("linked", "0", "20000"),
        ("linked-debug", "0", "5000"),
        ("static", "0", "5000"),
        ("linked", "1", "10000"),
        ("linked-debug", "2", "2000"),
    ],
)
def test_heaps_that_threads_share(mode: str, harden: str, rounds: str, run_program: Run) -> None:
    result = run_program(HERE / "named_heaps.c", mode, args=[rounds], env={"HAKMEM_HARDEN": harden})
    assert_clean(result)


@pytest.mark.long("a second each; each way to end in each mode", keep=1)
@pytest.mark.parametrize("mode", ["preload", "static"])
@pytest.mark.parametrize("how", ["return", "exit", "quick_exit", "pthread_exit"])
def test_the_process_ends_while_threads_allocate(how: str, mode: str, run_program: Run) -> None:
    for _ in range(EXIT_ROUNDS):
        result = run_program(HERE / "main_exits.c", mode, args=[how], timeout=20)
        assert_silent(result)
        if how != "quick_exit":  # which runs no atexit handlers, so leaves no report
            assert result.served >= 1


# ---- malloc gives blocks of the program's heaps, beside forks and ends of threads ------------------------


WAYS = [
    ("linked", "20000", "30", {}),
    ("static", "20000", "30", {}),
    ("linked-debug", "6000", "20", {}),
    ("linked-debug", "6000", "30", {"HAKMEM_PROFILE": "4K"}),
    ("linked", "6000", "20", {"HAKMEM_HARDEN": "1"}),
    ("linked-debug", "6000", "10", {"HAKMEM_HARDEN": "2"}),
]


@pytest.mark.long("a second of processor time each", keep=1)
@pytest.mark.parametrize(("mode", "rounds", "forks", "env"), WAYS)
def test_use(mode: str, rounds: str, forks: str, env: dict[str, str], run_program: Run) -> None:
    assert_clean(run_program(HERE / "heaps_in_use.c", mode, args=[rounds, forks], env=env, timeout=100))


@pytest.mark.parametrize("env", [{}, {"HAKMEM_HARDEN": "1"}, {"HAKMEM_PROFILE": "64"}])
@pytest.mark.parametrize("mode", ["linked", "linked-debug"])
def test_threads_outlive_it(mode: str, env: dict[str, str], run_program: Run) -> None:
    """With libhakmem.so, which sees threads start; the archive does not."""
    assert_silent(run_program(HERE / "threads_of_a_use.c", mode, env=env, stats=False))
