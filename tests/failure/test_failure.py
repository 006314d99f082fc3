"""Memory runs out: NULL and ENOMEM, nothing harmed, usable afterwards."""

from pathlib import Path

import pytest
from results import Result, Run

HERE = Path(__file__).resolve().parent


def assert_quiet(result: Result) -> None:
    """A report is not asked for: the program first runs as the one that sets the limit."""
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("size", ["16", "64", "1000", "5000", "32768", "100000", "1000000", "3000000"])
@pytest.mark.parametrize(("limit", "mib"), [("as", "64"), ("as", "256"), ("data", "64"), ("data", "256")])
def test_exhaust(limit: str, mib: str, size: str, run_program: Run) -> None:
    assert_quiet(run_program(HERE / "exhaust.c", "preload", args=[limit, mib, size], stats=False))


@pytest.mark.parametrize("size", ["64", "5000", "100000", "3000000"])
@pytest.mark.parametrize("mode", ["preload-debug", "static"])
def test_exhaust_in_other_modes(mode: str, size: str, run_program: Run) -> None:
    assert_quiet(run_program(HERE / "exhaust.c", mode, args=["as", "256", size], stats=False))


@pytest.mark.parametrize("mib", ["128", "512", "1024", "2048", "8192"])
def test_exhaust_address_space(mib: str, run_program: Run) -> None:
    assert_quiet(run_program(HERE / "exhaust_address_space.c", "preload", args=[mib], stats=False))


@pytest.mark.parametrize("mode", ["preload", "preload-debug", "static"])
@pytest.mark.parametrize("name", ["huge_sizes", "exhaust_by_threads", "threads_without_heap"])
def test_program(name: str, mode: str, run_program: Run) -> None:
    assert_quiet(run_program(HERE / f"{name}.c", mode, stats=False))
