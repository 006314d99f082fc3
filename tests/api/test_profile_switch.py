"""HAKMEM_PROFILE=never holds for the program itself, too."""

from pathlib import Path

import pytest
from modes import OWN_API_MODES, assert_clean
from results import Run

PROGRAM = Path(__file__).with_name("hak_profile.c")


@pytest.mark.parametrize("mode", OWN_API_MODES)
def test_it_is_refused(mode: str, run_program: Run) -> None:
    assert_clean(run_program(PROGRAM, mode, env={"HAKMEM_PROFILE": "never"}))
