"""prof.dump: hakmem's heap profile as jeprof reads it."""

import re
import shutil
from pathlib import Path

import pytest
from modes import assert_clean
from results import Run, captured

HERE = Path(__file__).resolve().parent
LIVE_BYTES = 10_000 * (1024 + 112)  # of keeper and other, as hakmem rounds them
SHARE = 0.15  # of it that an estimate may be off: one sample in 4 KiB


@pytest.fixture
def dumped(run_program: Run, tmp_path: Path) -> Path:
    path = tmp_path / "one"
    conf = {"MALLOC_CONF": "prof:true,lg_prof_sample:12"}
    assert_clean(run_program(HERE / "dump.c", "linked", args=[tmp_path / "more", path], env=conf))
    assert len(list(tmp_path.glob("more.*.0.m0.heap"))) == 1
    return path


def sums(line: str) -> list[int]:
    found = re.fullmatch(r"  t\*: (\d+): (\d+) \[(\d+): (\d+)\]", line)
    assert found, line
    return [int(number) for number in found.groups()]


def test_sums_are_those_of_all_stacks(dumped: Path) -> None:
    profile, _, maps = dumped.read_text().partition("\nMAPPED_LIBRARIES:\n")
    first, total, *stacks = profile.splitlines()
    assert first == "heap_v2/1"
    parts = [sums(line) for line in stacks[1::2]]
    assert all(
        abs(sum(column) - whole) <= len(parts)
        for column, whole in zip(zip(*parts, strict=True), sums(total), strict=True)
    )
    assert abs(sums(total)[1] - LIVE_BYTES) < SHARE * LIVE_BYTES
    assert sums(total)[3] > 1.5 * sums(total)[1]
    starts = [tuple(int(end, 16) for end in line.split()[0].split("-")) for line in maps.splitlines()]
    addresses = {int(word, 16) for line in stacks[::2] for word in line.split()[1:]}
    assert all(any(begin <= address < end for begin, end in starts) for address in addresses)


@pytest.mark.skipif(shutil.which("jeprof") is None, reason="not installed: libjemalloc-dev")
def test_jeprof_names_the_functions(dumped: Path) -> None:
    program = re.search(r" (/\S+)$", dumped.read_text(), re.MULTILINE)  # the first that is mapped
    assert program
    table = captured(["jeprof", "--text", "--show_bytes", program[1], dumped], check=True).stdout
    rows = {line.split()[-1].split(".")[0]: int(line.split()[0]) for line in table.splitlines()[1:]}
    assert abs(rows["keeper"] - 10_000 * 1024) < SHARE * LIVE_BYTES
    assert rows.get("passing", 0) < rows["keeper"] / 10
