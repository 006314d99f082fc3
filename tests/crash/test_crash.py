"""One line when the process dies by a signal inside the allocator, none when it dies elsewhere; the way it
ends stays what it was."""

import re
import signal
from pathlib import Path

import pytest
from results import Run

PROGRAM = Path(__file__).resolve().parent / "crash.c"
LINE = r"hakmem: SIGSEGV inside the allocator: instruction 0x[0-9a-f]+, address 0x8 \(.*\)\n"
NOTHING = ""


@pytest.mark.parametrize(
    ("how", "mode", "options", "status", "line"),
    [
        ("inside", "linked", {}, -signal.SIGSEGV, LINE),
        ("inside", "linked", {"HAKMEM_CRASH_LINE": "0"}, -signal.SIGSEGV, NOTHING),
        ("outside", "linked", {}, -signal.SIGSEGV, NOTHING),
        ("outside", "static", {}, -signal.SIGSEGV, NOTHING),
        ("sent", "linked", {}, -signal.SIGSEGV, NOTHING),
        ("handled", "linked", {}, 7, NOTHING),
    ],
)
def test_crash(
    how: str, mode: str, options: dict[str, str], status: int, line: str, run_program: Run
) -> None:
    result = run_program(PROGRAM, mode, args=[how], env=options, stats=False)
    assert result.returncode == status
    assert re.fullmatch(line, result.stderr), result.stderr
