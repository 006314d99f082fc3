"""A profile of a running process in pprof itself: sites, lines, mappings, build ids and differences."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compiling import marked_lines
from hakmem.target.elf import open_elf
from preload import clean_environment
from results import captured
from tool.conftest import Tool

SOURCE = Path(__file__).parent / "programs" / "two_sites.c"
LINES = marked_lines(SOURCE)
BLOCK_BYTES = 1 << 20  # larger than R: each is sampled, so that figures are exact
Ask = Callable[..., str]


class Leaker:
    """The program; `leak(grow, keep)` lets each of its sites leak so many blocks."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def leak(self, grow: int, keep: int) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{grow} {keep}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "leaked\n"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    path = tmp_path / "two_sites"
    words = ["gcc", "-O1", "-g", "-fno-optimize-sibling-calls", "-Wl,--build-id", SOURCE, "-o", path]
    subprocess.run(words, check=True)
    return path


@pytest.fixture
def leaker(built: Path, tool: Tool) -> Iterator[Leaker]:
    environment = clean_environment() | {"LD_PRELOAD": str(tool.library), "HAKMEM_PROFILE": "4096"}
    with subprocess.Popen(
        [built], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        yield Leaker(child)
        assert child.stdin is not None
        child.stdin.close()


@pytest.fixture
def ask(pprof_tool: Path, tmp_path: Path) -> Ask:
    def run(*words: str | Path) -> str:
        step = captured(
            [pprof_tool, "-nodefraction=0", "-unit=b", *words],
            timeout=200,
            env=os.environ | {"PPROF_TMPDIR": str(tmp_path)},
        )
        assert step.returncode == 0, step.stderr
        return step.stdout

    return run


def flat(text: str) -> dict[str, int]:
    """Function → bytes, of -top."""
    rows = re.findall(r"^\s*(-?\d+)B?\s.*\s(grow|keep)$", text, re.MULTILINE)
    return {name: int(value) for value, name in rows}


def test_a_live_profile_in_pprof(leaker: Leaker, built: Path, tool: Tool, ask: Ask, tmp_path: Path) -> None:
    first, second = tmp_path / "first.pb.gz", tmp_path / "second.pb.gz"
    leaker.leak(3, 7)
    assert tool("profile", leaker.process.pid, "-o", first).status == 0
    leaker.leak(5, 0)
    assert tool("profile", leaker.process.pid, "-o", second).status == 0

    found = flat(ask("-top", first))
    assert found["keep"] >= 7 * BLOCK_BYTES
    assert found["keep"] == pytest.approx(7 * BLOCK_BYTES, rel=0.02)
    assert found["grow"] == pytest.approx(3 * BLOCK_BYTES, rel=0.02)
    assert "two_sites.c" in ask("-top", "-files", first)

    listed = ask("-list=^grow$", f"-source_path={SOURCE.parent}", first)
    [row] = [line for line in listed.splitlines() if "line of grow" in line]
    assert re.match(rf"\s+\d+B\s+\d+B\s+{LINES['grow']}\b", row), listed

    changed = flat(ask("-top", f"-diff_base={first}", second))
    assert changed["grow"] == pytest.approx(5 * BLOCK_BYTES, rel=0.02)
    assert "keep" not in changed or changed["keep"] == 0

    raw = ask("-raw", first)
    file = open_elf(built)
    assert file is not None
    rows = re.findall(
        r"^\d+: (0x[0-9a-f]+)/(0x[0-9a-f]+)/(0x[0-9a-f]+) (\S+) ([0-9a-f]+) ", raw, re.MULTILINE
    )
    mapping = next(row for row in rows if row[3] == str(built))
    assert mapping[4] == file.build_id
    places = re.findall(r"^\s+\d+: (0x[0-9a-f]+) M=(\d+) (\w+)", raw, re.MULTILINE)
    inside = [int(address, 16) for address, _, name in places if name in LINES]
    assert inside
    assert all(int(mapping[0], 16) <= address < int(mapping[1], 16) for address in inside)
