"""hakmem's own thread is in nobody's way."""

import os
from pathlib import Path

import pytest
from results import Result, Run

SOURCE = Path(__file__).resolve().parent / "helper_thread.c"


def run_case(run_program: Run, case: str, mode: str = "preload", **options: str) -> Result:
    result = run_program(SOURCE, mode, "-D_GNU_SOURCE", args=[case], env=options, stats=False, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    return result


DEBUG = pytest.param("preload-debug", marks=pytest.mark.long("4 seconds of waiting"))


@pytest.mark.parametrize("mode", ["preload", DEBUG, "static"])
@pytest.mark.parametrize("case", ["ends", "goes"])
def test_it_ends_with_the_program(case: str, mode: str, run_program: Run) -> None:
    run_case(run_program, case, mode)


def test_it_ends_with_the_program_when_it_is_wanted_always(run_program: Run) -> None:
    run_case(run_program, "ends", HAKMEM_HELPER_THREAD="1")


def test_so_does_the_ticker_of_the_sampler(run_program: Run) -> None:
    run_case(run_program, "ends", HAKMEM_GUARD="1")


def test_it_is_interrupted_by_the_c_library(run_program: Run) -> None:
    run_case(run_program, "setuid")


def test_a_program_is_single_threaded_again_after_its_joins(run_program: Run) -> None:
    run_case(run_program, "unshare")


def test_it_has_neither_priority_nor_processors_of_who_started_it(run_program: Run) -> None:
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("with one processor there is nothing to inherit")
    run_case(run_program, "inherits")


@pytest.mark.skipif(os.geteuid() != 0, reason="root is to become a user without other processes")
def test_a_program_has_all_the_threads_it_may_have(run_program: Run) -> None:
    run_case(run_program, "limit")
