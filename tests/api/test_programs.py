"""Every C program of this folder that speaks for itself: exit status 0 and silence, in every mode."""

from pathlib import Path

import pytest
from modes import OWN_API_MODES, assert_clean, modes_for
from results import Run

HERE = Path(__file__).resolve().parent
# Those whose output is looked at by test_reports.py and test_options.py.
PRINTING = {"hak_stats_print", "hak_stats_json", "churn"}
# An hour: memory that the program asks about must not age away meanwhile.
ENVIRONMENT = {"hak_purge": {"HAKMEM_DECAY_MS": "3600000"}, "malloc_trim": {"HAKMEM_DECAY_MS": "3600000"}}
MAKER = "fitted_classes.c"
# The C library lacks what these call (Debian 12's the first), so they cannot be linked without hakmem.
NEEDS_LIBRARY = {"free_sized", "jemalloc_calls"}

HARDENED = [{"HAKMEM_HARDEN": "1"}, {"HAKMEM_HARDEN": "2"}]
GUARDED = {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"}
LIMITED = {"HAKMEM_LIMIT_HARD": "1G"}
PROFILED = {"HAKMEM_PROFILE": "64"}
NEVER_PROFILED = {"HAKMEM_PROFILE": "never"}
MANNERLY = ("preload", "static", "preload-debug")  # as tests/glibc
# Programs that try more with options: in these modes, with each of these options.
WITH_OPTIONS: dict[str, tuple[tuple[str, ...], list[dict[str, str]]]] = {
    # A hard limit counts as much of a range as was asked for, in pages.
    "hak_rezalloc": (("linked",), [LIMITED]),
    "mallinfo": (MANNERLY, [*HARDENED, GUARDED]),
    "refusals": (MANNERLY, [*HARDENED, GUARDED]),
    "hak_profile": (OWN_API_MODES, [NEVER_PROFILED]),
    # It asks of free blocks, too: test_fortify.py looks at what is said of them.
    "object_size": (OWN_API_MODES, [level | {"HAKMEM_ON_MISUSE": "ignore"} for level in HARDENED]),
    "hak_move": (OWN_API_MODES, [*HARDENED, GUARDED, LIMITED, PROFILED]),
    "jemalloc_calls": (
        ("linked", "linked-debug"),
        [*HARDENED, GUARDED | {"HAKMEM_GUARD_BYTES": "256M"}, LIMITED, PROFILED],
    ),
    # Each has blocks of its own kind ready that malloc takes before it asks for others.
    "hak_heap_use": (
        ("preload", "static-debug"),
        [{}, *HARDENED, GUARDED, LIMITED, NEVER_PROFILED]
        + [{"HAKMEM_PROFILE": period} for period in ("1", "64")]
        + [HARDENED[0] | {"HAKMEM_PROFILE": "4K"}],
    ),
}

CASES = [
    (program.stem, mode)
    for program in sorted(HERE.glob("*.c"))
    if program.stem not in PRINTING and program.name != MAKER
    for mode in (OWN_API_MODES if program.stem in NEEDS_LIBRARY else modes_for(program))
]


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_program(name: str, mode: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / f"{name}.c", mode, env=ENVIRONMENT.get(name)))


@pytest.mark.long("a second of processor time each", keep=1)
@pytest.mark.parametrize(
    ("name", "mode", "env"),
    [
        (name, mode, env)
        for name, (modes, options) in WITH_OPTIONS.items()
        for mode in modes
        for env in options
    ],
)
def test_program_with_options(name: str, mode: str, env: dict[str, str], run_program: Run) -> None:
    assert_clean(run_program(HERE / f"{name}.c", mode, env=env, timeout=120))


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES}))
@pytest.mark.parametrize("mode", ["linked-debug", "static"])
def test_program_with_fitted_classes(name: str, mode: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / f"{name}.c", mode, HERE / MAKER, env=ENVIRONMENT.get(name)))


def test_fully_static_program(run_program: Run) -> None:
    """With -static there is no dynamic linker to help, and libc's own malloc must stay out."""
    assert_clean(run_program(HERE / "churn.c", "static", "-static"), stdout="done\n")
