"""`hakmem what` of a process on glibc's malloc: the content of blocks that the test knows, and the way to one
of them."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from anyprocess.conftest import Process, Start
from hakmem.base.errors import MissingFileError
from hakmem.target.locate import is_block
from results import Compile
from tool.conftest import Tool
from tool.dumps import dumped, needs_gcore
from tool.processes import PROGRAMS
from tool.test_what import WANTED as IN_SAMPLES

EVERYTHING = ("--draws", "1000000")
# Each kind in programs/contents.cc of tests/tool → what it is called.
WANTED = IN_SAMPLES | {"texts": ("text", ""), "integers": ("numbers", "")}
CODE_PYTHON = """
class Thing: pass
kept = [Thing() for _ in range(3000)]
for thing in kept: thing.number = 5.5
print("ready", flush=True)
input()
"""


@pytest.fixture
def contents(start: Start, compile_c: Compile) -> Process:
    return start([compile_c(PROGRAMS / "contents.cc", "-rdynamic")])


def known_of(process: Process) -> dict[str, tuple[str, int]]:
    rows = (line.split() for line in process.said)
    return {name: (place, int(number)) for name, place, number in rows}


def rows_of(answer: dict[str, Any]) -> dict[tuple[str, str], dict[str, float]]:
    return {(row["kind"], row["name"]): row["blocks_share"] for row in answer["contents"]}


def test_all_that_is_read_is_judged_right(contents: Process, tool: Tool) -> None:
    answer = tool.json("what", contents.pid, *EVERYTHING)
    rows, known, whole = rows_of(answer), known_of(contents), answer["live_blocks"]
    assert answer["drawn"] == whole
    for name, content in WANTED.items():
        assert rows[content]["share"] * whole == pytest.approx(known[name][1], abs=8), name


def test_a_sample_says_the_same_within_its_interval(contents: Process, tool: Tool) -> None:
    """Intervals of twice the width hold the truth."""
    answer = tool.json("what", contents.pid, "--draws", "2000")
    rows, known, whole = rows_of(answer), known_of(contents), answer["live_blocks"]
    assert answer["drawn"] < whole / 2
    for name, content in WANTED.items():
        found, low, high = (rows[content][key] * whole for key in ("share", "low", "high"))
        assert found - 2 * (found - low) - 8 <= known[name][1] <= found + 2 * (high - found) + 8, name


@needs_gcore
def test_a_core_whose_program_is_missing(
    start: Start, compile_c: Compile, tool: Tool, tmp_path: Path
) -> None:
    """Dumps omit constants: names of classes are in the file alone."""
    program = tmp_path / "shop"
    shutil.copy(compile_c(PROGRAMS / "contents.cc", "-rdynamic", "-Wl,--build-id"), program)
    core = dumped(start([program]).pid, tmp_path)
    program.unlink()
    answer = tool.json("what", core)
    assert "no names of shop" in " ".join(answer["notes"])
    assert ("text", "") in rows_of(answer)
    assert tool("leaks", core, "--for", "0s").status == 0


def test_a_missing_library_is_named() -> None:
    """Not taken for a program without hakmem."""

    def read(address: int, _count: int) -> bytes:
        raise MissingFileError(address, "its file is missing")

    memory: Any = SimpleNamespace(read=read)
    with pytest.raises(MissingFileError, match="its file is missing"):
        is_block(memory, 0x1000)


def test_python_objects(start: Start, tool: Tool) -> None:
    process = start(["/usr/bin/python3", "-c", CODE_PYTHON], PYTHONMALLOC="malloc")
    answer = tool.json("what", process.pid, *EVERYTHING)
    names = {row["name"]: row["blocks_share"]["share"] * answer["live_blocks"] for row in answer["contents"]}
    assert abs(names["Thing"] - 3000) <= 2
    assert {"str", "dict", "tuple", "function", "code", "type"} <= names.keys()


def test_the_blocks_of_one_size(contents: Process, tool: Tool) -> None:
    answer = tool.json("what", contents.pid, "--class", "165")
    assert answer["contents"][0]["name"] == "shop::Order"
    assert answer["live_blocks"] >= 3000


def test_the_way_to_static_data(contents: Process, tool: Tool) -> None:
    place = known_of(contents)["single"][0]
    answer = tool.json("what", contents.pid, hex(int(place, 16) + 40), "--path")
    assert (answer["start"], answer["offset"], answer["state"]) == (place, 40, "live")
    assert 3000 <= answer["block_bytes"] <= 3016
    assert any("single" in one["where"] and one["kind"] == "static data" for one in answer["referrers"])
    assert [one["where"].endswith("single+0x0") for one in answer["path"]] == [True]


def test_a_block_with_a_mapping_of_its_own(contents: Process, tool: Tool) -> None:
    place = known_of(contents)["big"][0]
    answer = tool.json("what", contents.pid, place)
    assert (answer["start"], answer["state"]) == (place, "live")
    assert 5 << 20 <= answer["block_bytes"] <= (5 << 20) + 4096


@pytest.mark.parametrize(
    ("part", "state", "said"),
    [("cached", "magazine", "freed, in a thread cache"), ("freed", "free", "free, between other chunks")],
)
def test_a_freed_block(shape: Start, tool: Tool, part: str, state: str, said: str) -> None:
    process = shape("fragmented")
    place = hex(process.parts[part])
    answer = tool.json("what", process.pid, place)
    assert (answer["start"], answer["state"]) == (place, state)
    assert said in tool("what", process.pid, place).stdout


@pytest.mark.parametrize("place", ["0x1000", "0xffffffffffffffff"])
def test_no_block_is_there(contents: Process, tool: Tool, place: str) -> None:
    answer = tool.json("what", contents.pid, place)
    assert answer["start"] is None
    assert "not mapped" in answer["place"]


def test_an_address_outside_of_the_heap(contents: Process, tool: Tool) -> None:
    maps = Path(f"/proc/{contents.pid}/maps").read_text().splitlines()
    (end,) = (line.split()[0].split("-")[1] for line in maps if line.endswith("[stack]"))
    place = tool.json("what", contents.pid, hex(int(end, 16) - 64))["place"]
    assert "not glibc's" in place
    assert "[stack]" in place


def test_texts_are_shown_only_if_asked_for(contents: Process, tool: Tool) -> None:
    plain, shown = (tool("what", contents.pid, *words).stdout for words in ([], ["--examples"]))
    assert "quick brown" not in plain
    assert "quick brown" in shown
