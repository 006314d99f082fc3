"""HAKMEM_GUARD=1: what a guarded block finds, what is said about it, and that nothing is said otherwise."""

import re
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
import target
from modes import assert_clean
from preload import Report
from results import Run

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
EVERY = {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"}
# The names of functions can be found, and each has a frame.
NAMED = ("-rdynamic", "-fno-optimize-sibling-calls", "-fno-inline")

ADDRESS = r"0x[0-9a-f]+"
BLOCK = rf"the block of (?P<size>\d+) bytes at {ADDRESS} \(guarded\)"


@dataclass(frozen=True)
class Fault:
    """What misuse.c's misuse is called, how the program then ends, and which stacks are shown, each with a
    function that is in it."""

    first: str
    status: int
    stacks: tuple[tuple[str, str], ...]


ALLOCATED, FREED = ("allocated", "take"), ("freed", "release")
READ, WRITE, FREE = ("read", "main"), ("write", "main"), ("free", "release")
FREE_TWICE = rf"double free of {ADDRESS}: the block of 96 bytes is free already \(guarded\)"
BEHIND = rf"heap-buffer-overflow: write at {ADDRESS}, 0 bytes after {BLOCK}"

FAULTS = {
    "overflow-read": Fault(
        rf"heap-buffer-overflow: read at {ADDRESS}, 0 bytes after {BLOCK}", -signal.SIGSEGV, (READ, ALLOCATED)
    ),
    "overflow-write": Fault(BEHIND, -signal.SIGSEGV, (WRITE, ALLOCATED)),
    "underflow-read": Fault(
        rf"heap-buffer-underflow: read at {ADDRESS}, 1 bytes before {BLOCK}",
        -signal.SIGSEGV,
        (READ, ALLOCATED),
    ),
    "underflow-write": Fault(
        rf"heap-buffer-underflow: write at {ADDRESS}, 1 bytes before {BLOCK}",
        -signal.SIGSEGV,
        (WRITE, ALLOCATED),
    ),
    "overflow-found-by-free": Fault(
        rf"overflow seen at free of {ADDRESS}: written past its 95 bytes, first at offset 95 \(guarded\)",
        -signal.SIGABRT,
        (FREE, ALLOCATED),
    ),
    "use-after-free-read": Fault(
        rf"use-after-free: read at {ADDRESS}, 5 bytes into {BLOCK}", -signal.SIGSEGV, (READ, ALLOCATED, FREED)
    ),
    "use-after-free-write": Fault(
        rf"use-after-free: write at {ADDRESS}, 0 bytes into {BLOCK}",
        -signal.SIGSEGV,
        (WRITE, ALLOCATED, FREED),
    ),
    "use-after-free-by-thread": Fault(
        rf"use-after-free: read at {ADDRESS}, 0 bytes into {BLOCK}", -signal.SIGSEGV, (READ, ALLOCATED, FREED)
    ),
    "double-free": Fault(FREE_TWICE, -signal.SIGABRT, (FREE, ALLOCATED, FREED)),
    "realloc-after-free": Fault(
        FREE_TWICE.replace("double free", "double realloc"),
        -signal.SIGABRT,
        (("realloc", "main"), ALLOCATED, FREED),
    ),
    "invalid-free": Fault(
        rf"misaligned free of {ADDRESS}: inside {BLOCK}", -signal.SIGABRT, (FREE, ALLOCATED)
    ),
    "handled": Fault(BEHIND, 7, (WRITE, ALLOCATED)),
    "handled-chained": Fault(BEHIND, -signal.SIGSEGV, (WRITE, ALLOCATED)),
}


@dataclass(frozen=True)
class Stack:
    """A call stack of a report."""

    what: str
    thread: int
    functions: tuple[str, ...]


def stacks_of(lines: list[str], *, are_known: bool) -> list[Stack]:
    """The stacks below a report's first line, whose every line must be understood."""
    found: list[Stack] = []
    end = ":" if are_known else r" \(no call stack\)"
    for line in lines:
        if head := re.fullmatch(rf"hakmem:   (\w+) by thread (\d+){end}", line):
            found.append(Stack(head[1], int(head[2]), ()))
            continue
        frame = re.fullmatch(
            rf"hakmem:     #(\d+) {ADDRESS} (\S+)\+{ADDRESS}(?: \((\w+)\+{ADDRESS}\))?", line
        )
        assert frame, line
        last = found.pop()
        assert int(frame[1]) == len(last.functions)
        found.append(Stack(last.what, last.thread, (*last.functions, frame[3] or "")))
    return found


def check_report(fault: Fault, stderr: str, *, are_known: bool = True) -> list[Stack]:
    first, *rest = stderr.splitlines()
    assert re.fullmatch(rf"hakmem: {fault.first}", first), stderr
    stacks = stacks_of(rest, are_known=are_known)
    assert [stack.what for stack in stacks] == [what for what, _ in fault.stacks], stderr
    for stack, (_, function) in zip(stacks, fault.stacks, strict=True):
        assert function in stack.functions or not are_known, stderr
    return stacks


@pytest.mark.parametrize("mode", ["preload", "linked", "preload-debug", "static"])
@pytest.mark.parametrize("what", FAULTS)
def test_fault(what: str, mode: str, run_program: Run) -> None:
    """A static program has stacks only if it uses glibc's backtrace; all else is said."""
    result = run_program(HERE / "misuse.c", mode, *NAMED, args=[what], env=EVERY, stats=False)
    assert (result.returncode, result.stdout) == (FAULTS[what].status, ""), result.stderr
    check_report(FAULTS[what], result.stderr, are_known=mode != "static" or "#0" in result.stderr)


def test_threads_are_told_apart(run_program: Run) -> None:
    what = "use-after-free-by-thread"
    result = run_program(HERE / "misuse.c", "preload", *NAMED, args=[what], env=EVERY, stats=False)
    read, allocated, freed = check_report(FAULTS[what], result.stderr)
    assert read.thread == allocated.thread != freed.thread
    assert "release_on_thread" not in read.functions


def test_faults_elsewhere_are_the_programs(run_program: Run) -> None:
    result = run_program(HERE / "misuse.c", "preload", args=["handled-elsewhere"], env=EVERY, stats=False)
    assert (result.returncode, result.stderr) == (7, "")


def test_nothing_is_guarded_by_default(run_program: Run) -> None:
    result = run_program(HERE / "misuse.c", "preload", args=["overflow-write"], stats=False)
    assert (result.returncode, result.stdout, result.stderr) == (3, "no such block\n", "")


def guarded(reports: list[Report]) -> int:
    return sum(report["counters"]["unstable_guarded_blocks"] for report in reports)


@pytest.mark.parametrize("mode", ["preload", "static", "preload-debug"])
def test_nothing_is_said_of_correct_programs(mode: str, run_program: Run) -> None:
    options = EVERY | {"HAKMEM_GUARD_BYTES": "2560K"}
    result = run_program(HERE / "clean.c", mode, env=options)
    assert_clean(result)
    assert guarded(result.stats) > 100


# hak_family.c says what blocks of a class have; guarded ones have what was asked for.
API = [path for path in sorted((TESTS / "api").glob("*.c*")) if path.stem in {
    "alignment_natural", "alignment_power_of_two", "calloc_zero", "churn", "free_sized",
    "glibc_aliases", "malloc_zero", "new_forms", "new_handler", "realloc_content", "realloc_zero", "refusals",
    "usable_size", "valloc_pvalloc",
}]  # fmt: skip


@pytest.mark.parametrize("program", API, ids=lambda path: path.stem)
def test_every_entry_point(program: Path, run_program: Run) -> None:
    options = EVERY | {"HAKMEM_GUARD_BYTES": "256M"}
    result = run_program(program, "linked-debug", env=options, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")


PYTHON = """\
import json, threading
def work():
    for _ in range(50): json.loads(json.dumps({str(key): [key] * 20 for key in range(200)}))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
SQL = """\
with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 50000)
select count(*), sum(length(hex(n))) from numbers;
"""


@pytest.mark.long("2 seconds each", keep=1)
@target.not_there
@pytest.mark.parametrize("command", [["/usr/bin/python3", "-c", PYTHON], ["sqlite3", ":memory:", SQL]])
def test_real_programs(command: list[str], preload: Run) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    result = preload(command, env=EVERY | {"HAKMEM_GUARD_BYTES": "64M"})
    assert (result.returncode, result.stderr) == (0, "")
    assert guarded(result.stats) > 20


def test_threads_that_never_miss_are_sampled(run_program: Run) -> None:
    """Their magazines have what they need: only the ticker brings them to a slow path."""
    options = {"HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1000000000"}
    result = run_program(HERE / "steady.c", "preload", env=options)
    assert_clean(result)
    assert guarded(result.stats) >= 3
