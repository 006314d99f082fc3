"""Threads whose malloc gives blocks of the program's heaps, beside forks and ends of threads."""

from pathlib import Path

import pytest
from modes import assert_clean
from results import Run

PROGRAM = Path(__file__).with_name("heaps_in_use.c")
WAYS = [
    ("linked", "20000", "30", {}),
    ("static", "20000", "30", {}),
    ("linked-debug", "6000", "20", {}),
    ("linked-debug", "6000", "30", {"HAKMEM_PROFILE": "4K"}),
    ("linked", "6000", "20", {"HAKMEM_HARDEN": "1"}),
    ("linked-debug", "6000", "10", {"HAKMEM_HARDEN": "2"}),
]


@pytest.mark.parametrize(("mode", "rounds", "forks", "env"), WAYS)
def test_use(mode: str, rounds: str, forks: str, env: dict[str, str], run_program: Run) -> None:
    assert_clean(run_program(PROGRAM, mode, args=[rounds, forks], env=env, timeout=100))


@pytest.mark.parametrize("env", [{}, {"HAKMEM_HARDEN": "1"}, {"HAKMEM_PROFILE": "64"}])
@pytest.mark.parametrize("mode", ["linked", "linked-debug"])
def test_threads_outlive_it(mode: str, env: dict[str, str], run_program: Run) -> None:
    """With libhakmem.so, which sees threads start; the archive does not."""
    result = run_program(PROGRAM.with_name("threads_of_a_use.c"), mode, env=env, stats=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
