"""hak_calloc's zeros with a hard limit: it counts as much of a range as was asked for, in pages."""

from pathlib import Path

from modes import assert_clean
from results import Run

PROGRAM = Path(__file__).with_name("hak_calloc_whole.c")


def test_zeros_to_the_end(run_program: Run) -> None:
    assert_clean(run_program(PROGRAM, "linked", env={"HAKMEM_LIMIT_HARD": "1G"}))
