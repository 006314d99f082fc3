"""jemalloc's own calls in each way to run (jemalloc_calls.c); without options: test_programs.py."""

from pathlib import Path

import pytest
from modes import assert_clean
from results import Run

PROGRAM = Path(__file__).resolve().parent / "jemalloc_calls.c"
GUARD_ALL = {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1", "HAKMEM_GUARD_SLOTS": "4096"}


@pytest.mark.parametrize(
    "options",
    [
        {"HAKMEM_HARDEN": "1"},
        {"HAKMEM_HARDEN": "2"},
        GUARD_ALL,
        {"HAKMEM_LIMIT_HARD": "1G"},
        {"HAKMEM_PROFILE": "64"},
    ],
    ids=lambda options: next(iter(options)).removeprefix("HAKMEM_").lower(),
)
@pytest.mark.parametrize("mode", ["linked", "linked-debug"])
def test_options(mode: str, options: dict[str, str], run_program: Run) -> None:
    assert_clean(run_program(PROGRAM, mode, env=options, timeout=120))
