"""hakmem stat: the figures of a dump are those that the process had."""

import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from results import Compile
from tool.conftest import Start, StartOnHakmem, Stepper, Tool
from tool.dumps import dumped, needs_gcore

PATTERN = Path("/proc/sys/kernel/core_pattern")
# What a dump cannot know, or says differently.
OF_THE_MOMENT = {"time_s", "monotonic_s", "process", "command", "threads"}


def same(core: dict[str, Any], process: dict[str, Any]) -> None:
    """A dump knows neither the environment nor the cgroup."""
    for answer in (core, process):
        for option in answer["options_changed"]:
            del option["source"]
        answer["limits"] = {
            name: value for name, value in answer["limits"].items() if not name.startswith("cgroup")
        }
    for key in process.keys() - OF_THE_MOMENT:
        assert core[key] == process[key], key
    assert core["process"] is None


def dumped_by_kernel(program: Stepper, folder: Path) -> Path:
    program.go_on()  # it aborts
    program.process.wait()
    (core,) = folder.glob("core*")
    return core


def dumped_by_gdb(program: Stepper, folder: Path) -> Path:
    return dumped(program.pid, folder)


def can_kernel() -> bool:
    """A pattern without a folder means: into the folder of the process."""
    pattern = PATTERN.read_text().strip()
    return "|" not in pattern and "/" not in pattern and pattern.startswith("core")


DUMPERS = [
    pytest.param(
        dumped_by_kernel,
        id="kernel",
        marks=pytest.mark.skipif(
            not can_kernel(), reason=f"{PATTERN} sends dumps elsewhere than into the process's folder"
        ),
    ),
    pytest.param(dumped_by_gdb, id="gdb", marks=needs_gcore),
]


@pytest.fixture
def freed(
    compiled: Compile, stepper: Start, static_lib: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Stepper]]:
    """A program, preloaded or static, that has freed half of its blocks, and may be dumped into tmp_path."""
    monkeypatch.chdir(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    def start(linked: str) -> Stepper:
        flags = ["-static", "-s", static_lib] if linked == "static" else []
        words = [compiled("blocks", *flags), "-r", "48:5000", "3000:200", "100000:20", "5000000:2"]
        program = stepper(words, "begun", preload=linked != "static", HAKMEM_HELPER_THREAD="0")
        program.go_on("allocated")
        program.go_on("freed")
        return program

    yield start
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


@pytest.mark.long("a second each; each way to make a core", keep=1)
@pytest.mark.parametrize("dump", DUMPERS)
@pytest.mark.parametrize("linked", ["preloaded", "static"])
def test_same_figures_as_of_the_process(
    tool: Tool, freed: Start, tmp_path: Path, dump: Callable[[Stepper, Path], Path], linked: str
) -> None:
    program = freed(linked)
    before = json.loads(tool("stat", program.pid, "--json").stdout)
    core = dump(program, tmp_path)
    after = json.loads(tool("stat", core, "--json").stdout)
    same(after, before)
    assert after["memory"]["live_bytes"] > 5_000_000
    shown = tool("stat", core)
    assert shown.status == 0
    assert f"PID {before['pid']}" in shown.stdout


@needs_gcore
def test_files_that_have_moved_are_named(
    tool: Tool, lib: Path, on_hakmem: StartOnHakmem, tmp_path: Path
) -> None:
    """A core of another machine: the library is not where it was."""
    moved = tmp_path / "there" / "libhakmem.so"
    moved.parent.mkdir()
    shutil.copy(lib, moved)
    process = on_hakmem(["sleep", "60"], library=moved)
    while "libhakmem" not in Path(f"/proc/{process.pid}/maps").read_text():
        os.sched_yield()
    core = dumped(process.pid, tmp_path)
    before = json.loads(tool("stat", core, "--json").stdout)
    shutil.copy(lib, tmp_path / "libhakmem.so")
    moved.unlink()
    for library in (tmp_path, tmp_path / "libhakmem.so"):
        ended = tool("stat", core, "--files", library, "--json")
        assert ended.status == 0, ended.stderr
        same(json.loads(ended.stdout), before)


@pytest.mark.long("2 seconds each; each way to make a core")
@pytest.mark.parametrize("dump", DUMPERS)
@pytest.mark.parametrize("linked", ["preloaded", "static"])
def test_truncated_cores_say_so(
    tool: Tool, freed: Start, tmp_path: Path, dump: Callable[[Stepper, Path], Path], linked: str
) -> None:
    """Their programs "did not run on hakmem": its data lies above the heap's.  A static program's lies below,
    so the rest is shown, with a warning."""
    core = dump(freed(linked), tmp_path)
    data = core.read_bytes()
    shown = 0
    for length in (len(data) * 97 // 100, len(data) // 2, len(data) // 10, 5000, 700):
        part = tmp_path / f"part.{length}"
        part.write_bytes(data[:length])
        for command in ("stat", "why", "what", "leaks"):
            ended = tool(command, part)
            assert f"is truncated: it has {length:,} of" in ended.stderr, (command, length, ended)
            assert ended.status in (0, 1)
            shown += ended.status == 0
    assert (shown > 0) == (dump is dumped_by_kernel and linked == "static")


def test_what_is_no_core(tool: Tool, lib: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a core")
    (tmp_path / "empty").touch()
    for path, words in (
        (text, "is not a core dump (not an ELF file)"),
        (lib, "a program or library"),
        (tmp_path / "empty", "empty"),
    ):
        ended = tool("stat", path)
        assert ended.status == 1, ended
        assert words in ended.stderr
    assert tool("stat", tmp_path / "nosuch").status == 2
