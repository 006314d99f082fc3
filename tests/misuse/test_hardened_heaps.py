"""HAKMEM_HARDEN and heaps that the program has made: an overflow of one of their blocks is found."""

import re
import signal
from pathlib import Path

import pytest
from misuse.test_hardened import LEVELS, PAST, run_hardened
from misuse.test_stacks import NAMED, functions_of
from results import Result, Run

HERE = Path(__file__).resolve().parent / "heaps"
OVERFLOW = HERE / "overflow.c"
# What the program does with the block, and what the line names.
WAYS = {
    "malloc_usable_size": "malloc_usable_size",
    "free": "free",
    "free in a thread": "free",
    "realloc": "realloc",
    "realloc to less": "realloc",
    "hak_heap_realloc": "hak_heap_realloc",
    "hak_expand": "malloc_usable_size",
    "free_all": "hak_heap_free_all",
    "destroy": "hak_heap_destroy",
}
SIZES = ("8", "100", "5000", "32760", "100001")  # without slack, and with; the last one's are ranges
OWNER = r' \((?:tiny|mid|big) class \d+, of heap "mine"\)'


def overflow(run_program: Run, way: str, size: str, byte: str, env: dict[str, str]) -> Result:
    """With the names of functions, so that its stacks can be read."""
    return run_program(OVERFLOW, "linked", *NAMED, "-pthread", args=[way, size, byte], env=env, stats=False)


def test_every_way_is_tried() -> None:
    assert re.findall(r'\{"([a-z_ ]+)",', OVERFLOW.read_text()) == list(WAYS)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", WAYS)
def test_an_overflow_by_one_byte_is_found(way: str, level: str, run_program: Run) -> None:
    for size in SIZES:
        for byte in ("0", "65"):
            result = overflow(run_program, way, size, byte, {"HAKMEM_HARDEN": level})
            assert result.returncode == -signal.SIGABRT, (size, byte, result.stderr)
            first, *stack = result.stderr.splitlines()
            line = (
                rf"hakmem: overflow seen at {WAYS[way]} of 0x[0-9a-f]+: {PAST} {size} bytes, "
                rf"(?:first at|somewhere after) offset {size}{OWNER}"
            )
            assert re.fullmatch(line, first), result.stderr
            functions = functions_of(stack)
            assert "thread" in way or "main" in functions, result.stderr


@pytest.mark.parametrize("way", ["free_all", "destroy", "free in a thread"])
def test_it_is_told_once_and_the_program_goes_on(way: str, run_program: Run) -> None:
    env = {"HAKMEM_HARDEN": "1", "HAKMEM_ON_MISUSE": "warn"}
    result = overflow(run_program, way, "100", "65", env)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("overflow seen at") == 1, result.stderr


def test_a_stray_write_before_a_range_is_found(run_program: Run) -> None:
    program, env = HERE.parent / "hardened" / "stray_write.c", {"HAKMEM_HARDEN": "1"}
    result = run_program(program, "linked", args=["100000", "-1", "mine"], env=env, stats=False)
    assert result.returncode == -signal.SIGABRT, result.stderr
    found = rf"hakmem: stray write seen at free of 0x[0-9a-f]+: free memory was written to, .*{OWNER}\n"
    assert re.match(found, result.stderr), result.stderr


def test_nothing_is_known_by_default(run_program: Run) -> None:
    result = overflow(run_program, "free_all", "100", "65", {})
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", ["linked", "static-debug"])
def test_a_sound_program_runs(mode: str, level: str, run_program: Run) -> None:
    result = run_hardened(run_program, HERE / "sound.c", level, mode)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.long("2 seconds of processor time each")
@pytest.mark.parametrize("level", LEVELS)
def test_all_that_heaps_can_do(level: str, run_program: Run) -> None:
    result = run_hardened(run_program, HERE.parents[1] / "api" / "hak_heap.c", level, "linked")
    assert (result.returncode, result.stderr) == (0, "")
