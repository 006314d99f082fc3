"""Every C program of this folder that speaks for itself: exit status 0 and silence, in every mode."""

from pathlib import Path

import pytest
from modes import OWN_API_MODES, assert_clean, modes_for
from results import Run

HERE = Path(__file__).resolve().parent
# Those whose output is looked at by test_reports.py and test_options.py.
PRINTING = {"malloc_info", "malloc_stats", "hak_stats_print", "hak_stats_json", "churn"}
# An hour: memory that the program asks about must not age away meanwhile.
ENVIRONMENT = {"hak_purge": {"HAKMEM_DECAY_MS": "3600000"}, "malloc_trim": {"HAKMEM_DECAY_MS": "3600000"}}
MAKER = "fitted_classes.c"
# The C library lacks what these call (Debian 12's the first), so they cannot be linked without hakmem.
NEEDS_LIBRARY = {"free_sized", "jemalloc_calls"}

CASES = [
    (program.stem, mode)
    for program in sorted(HERE.glob("*.c"))
    if program.stem not in PRINTING and program.name != MAKER
    for mode in (OWN_API_MODES if program.stem in NEEDS_LIBRARY else modes_for(program))
]


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_program(name: str, mode: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / f"{name}.c", mode, env=ENVIRONMENT.get(name)))


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES}))
@pytest.mark.parametrize("mode", ["linked-debug", "static"])
def test_program_with_fitted_classes(name: str, mode: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / f"{name}.c", mode, HERE / MAKER, env=ENVIRONMENT.get(name)))


def test_fully_static_program(run_program: Run) -> None:
    """With -static there is no dynamic linker to help, and libc's own malloc must stay out."""
    assert_clean(run_program(HERE / "churn.c", "static", "-static"), stdout="done\n")
