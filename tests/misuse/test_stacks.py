"""Hardened mode: a misuse is reported with the call stack of the thread that found it."""

import re
from pathlib import Path

import pytest
from misuse.test_hardened import LINES, PROGRAMS
from misuse.test_misuse import FAULTS
from results import Run

HERE = Path(__file__).resolve().parent / "stacks"
HARDEN = {"HAKMEM_HARDEN": "1"}
# The names of functions can be found, and each has a frame.
NAMED = ("-rdynamic", "-fno-optimize-sibling-calls", "-fno-inline")
FRAME = r"hakmem:     #(\d+) 0x[0-9a-f]+ (\S+)\+0x[0-9a-f]+(?: \((\w+)\+0x[0-9a-f]+\))?"
# Found when main is over: whether any frame is left then depends on the C library.
WITHOUT_MAIN = {"misaligned_at_thread_exit", "double_free_at_thread_exit", "double_free_of_ended_thread"}


def functions_of(lines: list[str]) -> list[str]:
    """The frames of the stack that begins with the first of these lines; they are numbered."""
    assert re.fullmatch(r"hakmem:   \w+(?:\[\])? by thread \d+:", lines[0]), lines
    frames = [re.fullmatch(FRAME, line) for line in lines[1:]]
    assert all(frames), lines
    assert [int(frame[1]) for frame in frames if frame] == list(range(len(frames)))
    return [frame[3] for frame in frames if frame]


@pytest.mark.parametrize("name", sorted((LINES.keys() | FAULTS.keys()) - WITHOUT_MAIN))
def test_the_stack_follows_the_line(name: str, run_program: Run) -> None:
    result = run_program(PROGRAMS[name], "linked", *NAMED, args=[name], env=HARDEN, stats=False)
    functions = functions_of(result.stderr.splitlines()[1:])
    by_thread = "by_another" in name or "by_two" in name
    assert by_thread or "main" in functions, result.stderr
    assert "free" not in functions[:1], "the library's own functions are left out"


def test_no_stack_by_default(run_program: Run) -> None:
    """Nothing is loaded for it there: a process pays for what is on its way."""
    result = run_program(PROGRAMS["free_of_stack"], "linked", *NAMED, args=["free_of_stack"], stats=False)
    first, next_step = result.stderr.splitlines()
    assert first.startswith("hakmem: foreign free of ")
    assert next_step.startswith("hakmem:   HAKMEM_HARDEN=1 shows its call stack; ")


@pytest.mark.parametrize("mode", ["preload", "preload-debug"])
def test_nobody_waits_for_ever(mode: str, run_program: Run) -> None:
    env = HARDEN | {"HAKMEM_ON_MISUSE": "warn"}
    result = run_program(HERE / "while_loading.c", mode, *NAMED, env=env, stats=False, timeout=60)
    assert result.returncode == 0
    assert result.stderr.count("hakmem: double free of ") == 200
    assert result.stderr.count("(misuse+") >= 190, "now and then another thread holds the heap just then"
