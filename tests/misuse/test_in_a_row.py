"""A block freed twice with no other free of its class in between: found by the second free, whatever way it
takes.  And what looks like it and is not."""

import re
import signal
from pathlib import Path

import pytest
from misuse.test_misuse import NEXT_STEP
from modes import assert_silent, ways_of
from results import Result, Run

HERE = Path(__file__).resolve().parent / "in_a_row"
TWICE, LEGAL = HERE / "twice.cc", HERE / "legal.c"

MODES = ("preload", "preload-debug", "static")
TINY, MID, LARGE, BIG = (0, 8, 64, 1000), (5000, 30000), (100000, 1000000), (3000000,)
SLABS, ALL = TINY + MID, TINY + MID + LARGE + BIG

WAYS = """
    free realloc free_realloc delete delete_array nothrow_delete aligned_delete sized_delete
    sized_delete_array sized_aligned_delete delete_sized_delete free_sized free_aligned_sized hak_free
    another_class_between churn_between of_its_new_holder realloc_of_freed usable_size_of_freed
""".split()
# Frees before it: to a full magazine of every capacity; in another thread to the last block that goes home by
# itself (early_call of src/heap/thread.c), the first in the magazine, and its first flushes.
BEFORE = (0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 257)
BEFORE_REMOTE = (0, 1, 64, 510, 511, 512, 513, *range(1533, 1542), 1700)
CALMLY: dict[str, str] = {}
IN_A_HURRY = {"HAKMEM_DECAY_MS": "1"}


def assert_found(result: Result) -> None:
    assert (result.returncode, result.stdout) == (-signal.SIGABRT, "")
    line = r"hakmem: (?:double|invalid) \w+ of 0x[0-9a-f]+: .*\n"
    assert re.fullmatch(line + NEXT_STEP, result.stderr), result.stderr


def free_twice(run_program: Run, mode: str, how: str, *numbers: int, **environment: str) -> Result:
    arguments = [how, *map(str, numbers)]
    return run_program(TWICE, mode, "-pthread", args=arguments, stats=False, env=environment)


@pytest.mark.parametrize("size", ALL)
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("mode", MODES)
def test_is_found_at_once(mode: str, how: str, size: int, run_program: Run) -> None:
    assert_found(free_twice(run_program, mode, how, size))


@pytest.mark.parametrize("size", SLABS)
def test_is_found_if_the_thread_gets_a_heap_between(size: int, run_program: Run) -> None:
    assert_found(free_twice(run_program, "preload", "a_heap_between", size))


@pytest.mark.parametrize("size", ALL)
def test_is_found_however_full_the_magazine_is(size: int, run_program: Run) -> None:
    for count in BEFORE if size in SLABS else BEFORE[:8]:
        assert_found(free_twice(run_program, "preload", "after", size, count))


@pytest.mark.parametrize("size", ALL)
def test_is_found_in_another_thread_than_the_owner_s(size: int, run_program: Run) -> None:
    for count in BEFORE_REMOTE if size in SLABS else BEFORE_REMOTE[:3]:
        assert_found(free_twice(run_program, "preload", "by_another_thread", size, count))


@pytest.mark.parametrize("size", TINY)
def test_is_found_in_a_thread_whose_heap_is_gone(size: int, run_program: Run) -> None:
    assert_found(free_twice(run_program, "preload", "without_heap", size))


def test_is_found_while_idle_caches_are_emptied(run_program: Run) -> None:
    for count in range(0, 36, 3):
        result = free_twice(
            run_program, "preload", "when_caches_are_emptied", 64, count, HAKMEM_DECAY_MS="10"
        )
        assert_found(result)


@pytest.mark.parametrize("name", ["warn", "ignore"])
@pytest.mark.parametrize("size", ALL)
def test_the_second_free_is_left_out_on_the_way_on(size: int, name: str, run_program: Run) -> None:
    """twice says so on standard output if it was not."""
    result = free_twice(run_program, "preload", "free", size, HAKMEM_ON_MISUSE=name)
    assert (result.returncode, result.stdout) == (0, "")
    assert len(result.stderr.splitlines()) == (name == "warn")


@pytest.mark.parametrize("environment", [CALMLY, IN_A_HURRY], ids=["calmly", "in a hurry"])
@pytest.mark.parametrize("pattern", ways_of(LEGAL))
@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_said_of_what_is_legal(
    mode: str, pattern: str, environment: dict[str, str], run_program: Run
) -> None:
    assert_silent(run_program(LEGAL, mode, "-pthread", args=[pattern], stats=False, env=environment))
