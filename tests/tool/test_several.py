"""Two hakmems in one process: the tool reads the one that serves it, and says so; doctor names both.

A program with libhakmem.a linked in, or a wheel's library, meets an LD_PRELOAD."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from preload import clean_environment, served
from results import Compile, captured
from tool.conftest import Start, Tool

HELD_BYTES = 1000 * 1000
NAME = "several hakmems"
# The program's malloc is its own, the C library's is the preloaded one.
HIDDEN = "-Wl,--exclude-libs,ALL"


@pytest.fixture(scope="module")
def other_library(lib: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second one, as that of a wheel beside a distribution's."""
    return Path(shutil.copy(lib, tmp_path_factory.mktemp("other") / "libhakmem.so"))


def findings(tool: Tool, *words: str | int) -> list[dict[str, Any]]:
    found = json.loads(tool("doctor", "--json", *words).stdout)["findings"]
    return [item for item in found if item["name"] == NAME]


@pytest.fixture
def linked(compiled: Compile, static_lib: Path) -> Path:
    return compiled("two", static_lib)


def test_a_program_with_one_linked_in(tool: Tool, linked: Path, lib: Path, stepper: Start) -> None:
    program = stepper([linked], "allocated")
    (item,) = findings(tool, program.pid)
    assert item["verdict"] == "advice"
    own, preloaded = item["found"].split("; ")
    assert own.startswith(f"{linked} (linked into it, hakmem ") and "serves malloc, and has held" in own
    assert preloaded.startswith(str(lib.resolve())) and preloaded.endswith("has held nothing")
    assert "without LD_PRELOAD" in item["advice"]


@pytest.mark.parametrize("command", ["stat", "why"])
def test_what_serves_it_is_read(tool: Tool, linked: Path, stepper: Start, command: str) -> None:
    program = stepper([linked], "allocated")
    ended = tool(command, program.pid, "--json")
    report = json.loads(ended.stdout)
    live = report["memory"]["live_bytes"] if command == "stat" else report["lines"][0]["bytes"]
    assert live >= HELD_BYTES
    assert f"has 2 hakmems; the one that has held most is read, in {linked}" in ended.stderr


@pytest.mark.parametrize("is_first", [True, False])
def test_two_libraries(
    tool: Tool, compiled: Compile, lib: Path, other_library: Path, stepper: Start, is_first: bool
) -> None:
    """The loader's order decides, not where they lie."""
    libraries = [lib.resolve(), other_library][:: 1 if is_first else -1]
    program = stepper([compiled("two")], "allocated", LD_PRELOAD=":".join(map(str, libraries)))
    (item,) = findings(tool, program.pid)
    serving, idle = item["found"].split("; ")
    assert serving.startswith(f"{libraries[0]} (") and "serves malloc" in serving
    assert idle.startswith(f"{libraries[1]} (") and "has held nothing" in idle
    ended = tool("stat", program.pid, "--json")
    assert json.loads(ended.stdout)["memory"]["live_bytes"] >= HELD_BYTES


def test_one_is_nothing_to_speak_of(tool: Tool, compiled: Compile, stepper: Start) -> None:
    program = stepper([compiled("two")], "allocated")
    assert findings(tool, program.pid) == []
    assert tool("stat", program.pid).stderr == ""


# ---- before it runs ----------------------------------------------------------------------------------------


def test_a_command_that_would_have_two(tool: Tool, linked: Path, tmp_path: Path) -> None:
    (item,) = findings(tool, "--", str(linked))
    assert "has hakmem linked in, which serves its malloc" in item["found"]
    assert "without hakmem run" in item["advice"]
    report = tmp_path / "report.json"
    ended = tool("run", "--env", f"HAKMEM_STATS=json:{report}", "--", linked, "on")
    assert ended.status == 0
    assert item["found"] in ended.stderr
    assert served(json.loads(report.read_text())) > 0, "the idle one did not replace it"


def test_a_command_that_is_linked_with_another_library(
    tool: Tool, compiled: Compile, lib: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a name relative to where the tool is; libraries of the same name are one to the loader."""
    program = compiled("two", lib, f"-Wl,-rpath,{lib.parent}")
    monkeypatch.chdir(program.parent)
    assert findings(tool, "--", f"./{program.name}") == []
    other = tmp_path / "libhakmem.so"
    other.write_bytes(lib.read_bytes().replace(b"\0libhakmem.so.0\0", b"\0libhakmem.so.9\0"))
    (item,) = findings(Tool(tool.path, other), "--", f"./{program.name}")
    assert f"has hakmem already, in {lib.parent}" in item["found"]
    assert f"preload that one: HAKMEM_LIBRARY={lib.parent}" in item["advice"]


# ---- where blocks cross ------------------------------------------------------------------------------------


def test_a_block_of_the_other(tool: Tool, compiled: Compile, static_lib: Path, stepper: Start) -> None:
    """strdup's block is the preloaded one's, and the program's own free is given it."""
    program = stepper([compiled("two", static_lib, HIDDEN)], "allocated")
    (item,) = findings(tool, program.pid)
    assert "foreign free" not in item["advice"], "until now one was enough"
    words = [str(compiled("two", static_lib, HIDDEN))]
    environment = clean_environment() | {"LD_PRELOAD": str(tool.library)}
    step = captured(words, env=environment, input="\n", timeout=60)
    assert step.returncode < 0
    assert "a block of another hakmem in this process" in step.stderr


def test_a_block_of_the_other_inside_the_own_window(tool: Tool, compiled: Compile, static_lib: Path) -> None:
    """Windows of 16 TiB begin anywhere in 16 TiB: in one run of two the other's blocks lie in the own one."""
    words = [str(compiled("two", static_lib, HIDDEN)), "on"]
    environment = clean_environment() | {"LD_PRELOAD": str(tool.library), "HAKMEM_WINDOW_GIB": "16384"}
    for _ in range(20):
        step = captured(words, env=environment, timeout=60)
        assert step.returncode < 0
        assert "a block of another hakmem in this process" in step.stderr


def test_both_hold_blocks(tool: Tool, compiled: Compile, static_lib: Path, stepper: Start) -> None:
    program = stepper([compiled("two", "-DBOTH", static_lib, HIDDEN)], "allocated")
    (item,) = findings(tool, program.pid)
    preloaded, own = item["found"].split("; ")
    assert (
        "serves malloc, and has held" in preloaded
        and "serves the program's own calls at most, and has held" in own
    )
    assert "foreign free" in item["advice"]
