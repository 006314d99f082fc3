"""bench/run --instructions: callgrind's files, and hakmem's own instructions against those in git."""

import csv
import shutil
from pathlib import Path

import pytest
from harness.allocators import Allocator
from harness.instructions import Profile, allocating_calls, count_row, own_instructions, read_profile
from harness.real_program import CommandProgram
from harness.real_suite import REAL_SUITE

RECORDED = Path(__file__).resolve().parents[2] / "docs/performance/instructions.tsv"
COUNTED = ("real-sqlite", "real-perl", "real-lua", "real-xmllint")
MOST = 1.02
ATTEMPTS = 3  # in 1 of 30 a program's last frees, of nearly all, wait for the clock's next millisecond
# Names are given once; the line after calls= has the callee's cost, which is not main's own.
FILE = """
events: Ir Dr D1mr|summary: 99 9 7|ob=(1) /usr/bin/program|fn=(1) main|0 10
cob=(2) /lib/libc.so.6|cfn=(2) malloc|calls=3 0|0 60|+2 5
ob=(2)|fn=(2)|0 40|cfn=(3) _int_malloc'2|calls=1 0|* 20
fn=(3)|0 20|fn=(4) memcpy|0 7|fn=(6) realloc|0 0|cfn=(2)|calls=9 0|0 0
ob=(3) ???|fn=(5) free|0 9
totals: 166 9 7
"""


def test_a_file_of_callgrind() -> None:
    profile = Profile()
    read_profile(FILE.replace("|", "\n"), profile)
    assert profile.own["/usr/bin/program", "main"] == 15
    assert own_instructions(profile, Allocator("glibc", None)) == 60
    assert own_instructions(profile, Allocator("hakmem", Path("/lib/libhakmem.so"))) == 9
    assert allocating_calls(profile) == 3
    assert profile.sums == {"Ir": 166, "Dr": 9, "D1mr": 7}


@pytest.mark.long("5 seconds in a simulated processor each")
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="not installed: valgrind")
@pytest.mark.parametrize("name", COUNTED)
def test_instructions_do_not_rise(name: str, lib: Path) -> None:
    with RECORDED.open() as table:
        recorded = next(row for row in csv.DictReader(table, delimiter="\t") if row["program"] == name)
    program = next(each for each in REAL_SUITE if each.name == name)
    if program.missing():
        pytest.skip(program.missing())
    assert isinstance(program, CommandProgram)
    for _ in range(ATTEMPTS):
        row = count_row(program, [Allocator("hakmem", lib.resolve()), Allocator("glibc", None)], print)
        if abs(row.base / int(recorded["calls"]) - 1) > 0.01:
            pytest.skip(f"another version of {program.program}: {row.base} calls, not {recorded['calls']}")
        ratio = (row.figures["hakmem"] or 0) / float(recorded["hakmem"])
        if ratio <= MOST:
            break
    assert 0.8 <= ratio <= MOST
