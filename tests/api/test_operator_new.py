"""operator new and delete, from g++ and clang++, preloaded and linked both ways."""

import signal
from pathlib import Path

import pytest
from modes import ALL_MODES, assert_clean
from results import Run, one_of_installed

HERE = Path(__file__).resolve().parent
SIZED = "-fsized-deallocation"  # clang 14 has it off by default


compiler = one_of_installed("g++", "clang++")


@pytest.mark.long("a second each; each mode and compiler has the same operators", keep=1)
@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.parametrize("name", ["new_forms", "new_handler", "new_bad_alloc"])
def test_program(name: str, mode: str, compiler: str, run_program: Run) -> None:
    assert_clean(run_program(HERE / f"{name}.cc", mode, SIZED, compiler=compiler))


@pytest.mark.long("a second each; each mode and compiler has the same operators", keep=1)
@pytest.mark.parametrize("mode", ALL_MODES)
def test_caller_without_exceptions(mode: str, compiler: str, run_program: Run) -> None:
    source = HERE / "new_no_exceptions.cc"
    result = run_program(source, mode, "-fno-exceptions", compiler=compiler)
    assert (result.returncode, result.stdout) == (-signal.SIGABRT, "before\n")
    assert "check failed" not in result.stderr
