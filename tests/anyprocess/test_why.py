"""`hakmem why` of a process on glibc's malloc: lines that add up to RSS, each with the bytes that it should
have, and a verdict that names the cause."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from anyprocess.conftest import Process, Start
from hakmem.census.glibc_why import TOP, WHOLE, causes
from hakmem.commands.arguments import open_target
from hakmem.target.glibc import walk, walk_of
from tool.conftest import Tool
from tool.dumps import dumped, needs_gcore

MIB = 1 << 20
SUM_TOLERANCE = 0.01  # of RSS
TRIM_SHARE, TRIM_BYTES = 0.02, MIB  # the issue's, of what malloc_trim(0) returns
PYTHON = (
    "kept = [str(i) * (i % 40) for i in range(200000)]; del kept[::2]; print('ready', flush=True); input()"
)
PERL = '$| = 1; my %h; $h{"key$_"} = "x" x ($_ % 200) for 1..60000; print "ready\\n"; <STDIN>'
INTERPRETERS: dict[str, tuple[list[str], dict[str, str]]] = {
    "python-malloc": (["/usr/bin/python3", "-c", PYTHON], {"PYTHONMALLOC": "malloc"}),
    "python": (["/usr/bin/python3", "-c", PYTHON], {}),
    "perl": (["perl", "-e", PERL], {}),
}
SHAPES = ("plain", "fragmented", "top", "whole", "mixed", "arenas", "behind", "tall", "mmapped")

Answer = dict[str, Any]


def bytes_of(answer: Answer, name: str) -> int:
    """Of the line of this name."""
    return sum(line["bytes"] for line in answer["lines"] if line["name"] == name)


def rss_of(process: Process) -> int:
    rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    found = re.search(r"^Rss: +(\d+) kB", rollup, re.MULTILINE)
    assert found
    return int(found[1]) << 10


def check_sum(answer: Answer, process: Process) -> None:
    assert answer["rss_bytes"] == pytest.approx(rss_of(process), rel=SUM_TOLERANCE)
    whole = sum(line["bytes"] for line in answer["lines"])
    assert whole == pytest.approx(answer["rss_bytes"], rel=SUM_TOLERANCE)
    assert not answer["broken"]


@pytest.mark.parametrize("kind", SHAPES)
def test_lines_add_up_to_rss(shape: Start, tool: Tool, kind: str) -> None:
    process = shape(kind)
    check_sum(tool.json("why", process.pid), process)


@pytest.mark.parametrize("name", INTERPRETERS)
def test_lines_of_interpreters_add_up(start: Start, tool: Tool, name: str) -> None:
    command, variables = INTERPRETERS[name]
    if not Path(command[0]).exists() and name != "perl":
        pytest.skip(f"{command[0]} is missing")
    process = start(command, **variables)
    answer = tool.json("why", process.pid)
    check_sum(answer, process)
    has_blocks_of_its_own = name == "python"  # pymalloc's arenas
    assert (bytes_of(answer, "other anonymous") > bytes_of(answer, "live data")) == has_blocks_of_its_own
    assert ("% is other anonymous, and malloc's overhead" in answer["verdict"]) == has_blocks_of_its_own


@pytest.mark.parametrize(
    ("kind", "part", "line"),
    [
        ("plain", "live", "live data"),
        ("fragmented", "pinned", "free chunks, pinned"),
        ("top", "free", "free chunks, whole pages"),  # malloc_trim returns the top, too
        ("whole", "free", "free chunks, whole pages"),
        ("arenas", "free", "free chunks, whole pages"),
        ("mmapped", "mmapped", "live data"),
        ("tall", "live", "live data"),
    ],
)
def test_parts_are_in_their_lines(shape: Start, tool: Tool, kind: str, part: str, line: str) -> None:
    process = shape(kind)
    answer = tool.json("why", process.pid)
    assert bytes_of(answer, line) == pytest.approx(process.parts[part], rel=0.02), answer["lines"]


@pytest.mark.parametrize("kind", SHAPES)
def test_malloc_trim_returns_what_was_said(shape: Start, tool: Tool, kind: str) -> None:
    process = shape(kind)
    answer = tool.json("why", process.pid)
    assert answer["purgeable_bytes"] == bytes_of(answer, "free chunks, whole pages")
    process.go_on("trimmed")
    returned = answer["rss_bytes"] - rss_of(process)
    assert answer["purgeable_bytes"] == pytest.approx(returned, rel=TRIM_SHARE, abs=TRIM_BYTES)
    again = tool.json("why", process.pid)
    assert again["purgeable_bytes"] < MIB


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("plain", ["live data of the program", "malloc's overhead is small"]),
        ("fragmented", ["Fragmentation: 3", "malloc_trim returns nothing"]),
        ("top", ["malloc_trim(0) returns them", "M_TRIM_THRESHOLD"]),
        ("whole", ["malloc_trim(0) returns them. "]),
        ("arenas", ["13 arenas, 12 of them without a thread", "MALLOC_ARENA_MAX"]),
        ("behind", ["13 arenas, 12 of them without a thread", "MALLOC_ARENA_MAX"]),
    ],
)
def test_the_verdict_names_the_cause(shape: Start, tool: Tool, kind: str, words: list[str]) -> None:
    verdict = tool.json("why", shape(kind).pid)["verdict"]
    for word in (*words, "On hakmem RSS would be about"):
        assert word in verdict, verdict
    assert ("Fragmentation" in verdict) == (kind == "fragmented")
    assert ("MALLOC_ARENA_MAX" in verdict) == (kind in ("arenas", "behind"))


def test_the_top_that_stays_is_not_promised() -> None:
    """Of an arena's top malloc_trim returns the part that is in the other line."""
    heap: Any = SimpleNamespace(sum={"top_bytes": 90 * MIB}.get, arenas=[])
    said = causes(heap, {WHOLE: 0, TOP: 90 * MIB}, 100 * MIB)
    assert said == ["M_TRIM_THRESHOLD or MALLOC_TRIM_THRESHOLD_ keeps the top of the arenas small"]
    said = causes(heap, {WHOLE: 20 * MIB, TOP: 70 * MIB}, 100 * MIB)
    assert said[0] == "20.0 MiB are free in whole pages: malloc_trim(0) returns them"


def test_json_has_the_fields_of_hakmems(shape: Start, tool: Tool) -> None:
    answer = tool.json("why", shape("fragmented").pid)
    assert answer["malloc"] == "glibc"
    assert answer["version"].startswith("glibc 2.")
    assert answer["broken"] == []
    (live,) = (line for line in answer["lines"] if line["name"] == "live data")
    most = live["details"][0]
    assert (most["block_bytes"], most["live_blocks"]) == (104, 50000)
    for line in answer["lines"]:
        assert line.keys() == {"name", "bytes", "exact", "advice", "details"}
        assert line["advice"].endswith(".")


def test_as_text(shape: Start, tool: Tool) -> None:
    """Nothing in it is hakmem's alone; --all has the arenas."""
    process = shape("arenas")
    text = tool("why", process.pid).stdout
    assert "malloc_trim(0) would return about" in text
    assert "sum of the lines" in text
    for word in ("hak_purge", "HAKMEM_DECAY_MS", "hakmem's metadata"):
        assert word not in text
    everything = tool("why", process.pid, "--all").stdout
    assert "no thread any more" in everything
    assert len(re.findall(r"arena \d+, no thread", everything)) >= 12


@needs_gcore
def test_a_core_says_the_same(shape: Start, tool: Tool, tmp_path: Path) -> None:
    """As far as malloc is concerned, and that it is estimated."""
    process = shape("fragmented")
    core = dumped(process.pid, tmp_path)
    alive, dead = (tool.json("why", one) for one in (process.pid, core))
    assert dead["is_core"]
    for name in ("live data", "free chunks, pinned"):
        assert bytes_of(dead, name) == pytest.approx(bytes_of(alive, name), rel=0.01)
    text = tool("why", core).stdout
    assert "glibc's memory in the core of" in text
    assert "all figures are estimates" in " ".join(text.split())
    assert tool.json("leaks", core, "--for", "0s")["definite"]["blocks"] == 0


@needs_gcore
def test_a_core_that_is_named_like_a_process(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As core_pattern %p names them: hakmem-walk would read the process of that number."""
    process, other = (start(["sh", "-c", "echo ready; read line"]) for _ in range(2))
    dumped(process.pid, tmp_path).rename(tmp_path / str(other.pid))
    monkeypatch.chdir(tmp_path)
    heap = walk(open_target(f"./{other.pid}"))
    assert {arena.address for arena in heap.arenas} == {
        arena.address for arena in walk_of(process.pid).arenas
    }


def test_the_same_while_threads_are_at_full_speed(shape: Start, tool: Tool) -> None:
    """No false damage, and the lines add up."""
    process = shape("hurried")
    for _ in range(2):
        answer = tool.json("why", process.pid)
        assert not answer["broken"], answer["broken"]
        assert not [note for note in answer["notes"] if "explained" in note]
        whole = sum(line["bytes"] for line in answer["lines"])
        assert whole == pytest.approx(answer["rss_bytes"], rel=0.06)  # it changes by as much meanwhile
