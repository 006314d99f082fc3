"""HAKMEM_HARDEN: the misuses found beyond the default, at the latest when the block is used again."""

import re
import signal
from pathlib import Path

import pytest
from misuse.test_misuse import FAULTS
from misuse.test_misuse import PROGRAMS as MISUSES
from modes import ways_of
from results import Result, Run

HERE = Path(__file__).resolve().parent / "hardened"
LEVELS = ("1", "2")

BLOCK = r" \((?:tiny|mid|big) class \d+(?:, of thread \d+)?\)"
PAST = "written past its"
LINES = {
    "overflow_by_one_zero": (f"overflow seen at free of ADDRESS: {PAST} 40 bytes, somewhere after offset 40"),
    "overflow_by_many": rf"overflow seen at free of ADDRESS: {PAST} \d+ bytes, somewhere after offset \d+",
    "overflow_of_mid": f"overflow seen at free of ADDRESS: {PAST} 5000 bytes, first at offset 5000",
    "overflow_seen_by_realloc": (
        f"overflow seen at realloc of ADDRESS: {PAST} 100 bytes, first at offset 103"
    ),
    "overflow_within_the_last_word": (
        f"overflow seen at free of ADDRESS: {PAST} 100001 bytes, first at offset 100001"
    ),
    # When the block is used again, or one beside it is freed, whatever comes first.
    "write_after_free": (
        r"(?:write after free of ADDRESS: the free block of \d+ bytes was written to at offset 20|"
        r"stray write seen at free of ADDRESS: free memory was written to, \d+ bytes "
        r"(?:before|after the start of) its block of \d+ bytes)"
    ),
    "double_free_tiny": r"double free of ADDRESS: the block of \d+ bytes is free already",
    "double_free_of_nothing": "double free of ADDRESS: the block of 0 bytes is free already",
    "double_free_large": r"double free of ADDRESS: the block of \d+ bytes is free already",
    "free_sized_by_one": "mismatched free of ADDRESS: size argument 99 does not match the block of 100 bytes",
}
BEHIND, FREED, NOTHING = "heap-buffer-overflow: write", "use-after-free: write", ""
CRASHES = {
    "crash_behind_large": BEHIND,
    "crash_behind_grown_large": BEHIND,
    "crash_behind_shrunk_large": BEHIND,
    "crash_in_moved_large": FREED,
    "crash_before_large": "heap-buffer-underflow: write",
    "crash_in_freed_large": FREED,
    "crash_read_of_nothing": NOTHING,
    "crash_write_to_nothing": NOTHING,
}
SOUND = ("sound", "sound_neighbours")
OF_HARDENED = ways_of(HERE / "found.c")
PROGRAMS = MISUSES | OF_HARDENED


def test_every_misuse_is_expected() -> None:
    assert OF_HARDENED.keys() == {*LINES, *CRASHES} - FAULTS.keys()


def run_hardened(run_program: Run, program: Path, level: str, mode: str, *args: str) -> Result:
    return run_program(program, mode, "-pthread", args=args, stats=False, env={"HAKMEM_HARDEN": level})


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", ["linked", "static-debug"])
@pytest.mark.parametrize("name", LINES)
def test_is_found(name: str, mode: str, level: str, run_program: Run) -> None:
    result = run_hardened(run_program, PROGRAMS[name], level, mode, name)
    assert result.returncode == -signal.SIGABRT, result.stderr
    line = rf"hakmem: {LINES[name]}{BLOCK}\n".replace("ADDRESS", "0x[0-9a-f]+")
    stack = r"(?:hakmem:   \w+ by thread \d+:\n(?:hakmem:     #\d+ 0x[0-9a-f]+ .*\n)+)?"  # test_stacks.py
    assert re.fullmatch(line + stack, result.stderr), result.stderr


@pytest.mark.parametrize("name", CRASHES)
def test_inaccessible_pages_stop_it(name: str, run_program: Run) -> None:
    result = run_hardened(run_program, PROGRAMS[name], "1", "linked", name)
    assert result.returncode == -signal.SIGSEGV, result.stderr
    assert CRASHES[name] in result.stderr


MIB = 1 << 20
STOPS = (-signal.SIGABRT, -signal.SIGSEGV)


def run_with(run_program: Run, name: str, level: str, *arguments: int) -> int:
    args, env = [str(argument) for argument in arguments], {"HAKMEM_HARDEN": level}
    return run_program(HERE / f"{name}.c", "linked", args=args, stats=False, env=env).returncode


@pytest.mark.parametrize("name", PROGRAMS)
def test_guards_weaken_nothing(name: str, run_program: Run) -> None:
    env = {"HAKMEM_HARDEN": "2", "HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"}
    result = run_program(PROGRAMS[name], "linked", "-pthread", args=[name], stats=False, env=env)
    assert result.returncode in STOPS, result.stderr


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [8, 24, 64, 1000, 4096, 20000, 50000, 100000, 262144])
def test_a_stray_write_is_found(size: int, level: str, run_program: Run) -> None:
    """At the write, where the memory is free, or when the block is freed."""
    offsets = (-MIB, -32, -16, -1, size, size + 31, size - 1 + MIB)
    found = {offset: run_with(run_program, "stray_write", level, size, offset) for offset in offsets}
    assert all(status in STOPS for status in found.values()), found
    assert found[-MIB] == found[size - 1 + MIB] == -signal.SIGSEGV, found


@pytest.mark.parametrize("size", [8, 24, 1000, 4096, 20000, 50000, 100000])
def test_a_write_after_free_is_found_by_the_next_call(size: int, run_program: Run) -> None:
    assert run_with(run_program, "write_after_free_before_malloc", "2", size) in STOPS


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("heap", [[], ["mine"]], ids=["malloc", "heap"])
def test_of_two_who_free_at_once_one_is_told(heap: list[str], level: str, run_program: Run) -> None:
    """And nothing else is said: the second thread touches nothing."""
    env = {"HAKMEM_HARDEN": level, "HAKMEM_ON_MISUSE": "warn"}
    program = HERE / "double_free_by_two_at_once.c"
    result = run_program(program, "linked", "-pthread", args=heap, stats=False, env=env)
    assert result.returncode == 0, result.stderr[-2000:]
    faults = re.findall(r"hakmem: (\w+ \w+) .*0x", result.stderr)
    faults = [fault for fault in faults if " by" not in fault]
    assert faults == ["double free"] * 500, sorted(set(faults))


@pytest.mark.long("a second each; each program at each level, in each mode", keep=1)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", ["linked", "static-debug"])
@pytest.mark.parametrize("name", SOUND)
def test_a_sound_program_runs(name: str, mode: str, level: str, run_program: Run) -> None:
    result = run_hardened(run_program, HERE / f"{name}.c", level, mode)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("name", FAULTS)
def test_finds_what_the_default_finds(name: str, run_program: Run) -> None:
    """The tier may be another: blocks are larger by their trailer, and ranges are all Big."""
    result = run_hardened(run_program, PROGRAMS[name], "1", "linked", name)
    assert result.returncode == -signal.SIGABRT, result.stderr
    assert re.match(rf"hakmem: {FAULTS[name].kind} ", result.stderr), result.stderr
