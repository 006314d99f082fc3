"""HAKMEM_ON_MISUSE: what follows a misuse."""

import signal

import pytest
from misuse.test_misuse import PROGRAMS
from results import Result, Run


def run(name: str, on_misuse: str, run_program: Run) -> Result:
    """It does its wrong once, and then ends."""
    environment = {"HAKMEM_ON_MISUSE": on_misuse}
    return run_program(PROGRAMS[name], "static", args=[name], stats=False, env=environment)


@pytest.mark.parametrize("name", PROGRAMS)
def test_warn_says_so_and_goes_on(name: str, run_program: Run) -> None:
    result = run(name, "warn", run_program)
    assert result.returncode == 0, result.stderr
    lines = result.stderr.splitlines()
    assert lines
    assert all(line.startswith("hakmem: ") for line in lines)


@pytest.mark.parametrize("name", PROGRAMS)
def test_ignore_goes_on_without_a_word(name: str, run_program: Run) -> None:
    result = run(name, "ignore", run_program)
    assert (result.returncode, result.stderr) == (0, "")


def test_malformed_warns_once_and_aborts(run_program: Run) -> None:
    result = run("double_free_tiny", "shrug", run_program)
    assert result.returncode == -signal.SIGABRT
    warning, fault = result.stderr.splitlines()
    assert warning == 'hakmem: warning: HAKMEM_ON_MISUSE="shrug" is not abort, warn or ignore; ignored'
    assert fault.startswith("hakmem: double free of ")
