"""What the fast path of free believes, in a program that allocates a little: found when the first block of
another class is wanted."""

import re
import signal
from pathlib import Path

import pytest
from misuse.test_misuse import NEXT_STEP
from results import Run

SOON = Path(__file__).resolve().parent / "soon" / "soon.c"
TINY, MID = (16, 64, 1024), (5120, 16384)

# How, what it is called, and for blocks of what sizes.
WAYS = {
    "interleaved": ("double", TINY + MID),
    "two_between": ("double", TINY + MID),
    "odd": ("misaligned", TINY + MID),
    "inside": ("misaligned", TINY + MID),
    "never_handed_out": ("double", TINY + MID),
    "by_two_threads": ("double", TINY + MID),
}
CASES = [(how, size) for how, (_, sizes) in WAYS.items() for size in sizes]


def line_of(how: str) -> str:
    return rf"hakmem: {WAYS[how][0]} free of 0x[0-9a-f]+: .* \((?:tiny|mid) class \d+, of thread \d+\)\n"


@pytest.mark.parametrize("mode", ["preload", "preload-debug", "static"])
@pytest.mark.parametrize(("how", "size"), CASES)
def test_is_found_soon(how: str, size: int, mode: str, run_program: Run) -> None:
    result = run_program(SOON, mode, "-pthread", args=[how, str(size)], stats=False)
    assert (result.returncode, result.stdout) == (-signal.SIGABRT, "")
    assert re.fullmatch(line_of(how) + NEXT_STEP, result.stderr), result.stderr


@pytest.mark.parametrize(("how", "size"), CASES)
def test_is_not_handed_out_where_the_program_goes_on(how: str, size: int, run_program: Run) -> None:
    """soon says so on standard output if it was."""
    environment = {"HAKMEM_ON_MISUSE": "warn"}
    result = run_program(SOON, "preload", "-pthread", args=[how, str(size)], stats=False, env=environment)
    assert (result.returncode, result.stdout) == (0, "")
    assert re.fullmatch(line_of(how), result.stderr), result.stderr
