"""malloc_object_size where it is exact; test_programs.py runs the same program in the default mode."""

from pathlib import Path

import pytest
from modes import OWN_API_MODES, assert_clean
from results import Run

PROGRAM = Path(__file__).with_name("object_size.c")


@pytest.mark.parametrize("mode", OWN_API_MODES)
@pytest.mark.parametrize("level", ["1", "2"])
def test_exact_in_hardened_mode(mode: str, level: str, run_program: Run) -> None:
    # It asks of free blocks, too: test_fortify.py looks at what is said of them.
    options = {"HAKMEM_HARDEN": level, "HAKMEM_ON_MISUSE": "ignore"}
    assert_clean(run_program(PROGRAM, mode, env=options))
