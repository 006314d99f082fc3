"""hakmem core names the stacks of the last report of a guarded block: who misused, took and freed it."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from preload import clean_environment
from tool.conftest import Tool
from tool.test_symbolize_guard import FLAGS, SOURCE

pytestmark = pytest.mark.skipif(not shutil.which("gdb"), reason="gdb is missing (Debian's package gdb)")

# What the program does, what is said of it, and which functions are on which stack.
MISUSES = {
    "use-after-free-read": (
        r"use-after-free: read at 0x\w+, 5 bytes into the block of 96 bytes at 0x\w+",
        {"read": "main", "allocated": "take", "freed": "release"},
    ),
    "overflow-write": (
        r"heap-buffer-overflow: write at 0x\w+, 0 bytes after the block of 96 bytes at 0x\w+",
        {"write": "main", "allocated": "take"},
    ),
    "double-free": (
        r"double free: free at 0x\w+, 0 bytes into the block of 96 bytes at 0x\w+",
        {"free": "release", "allocated": "take", "freed": "release"},
    ),
    "invalid-free": (
        r"invalid free: free at 0x\w+, 16 bytes into the block of 96 bytes at 0x\w+",
        {"free": "release", "allocated": "take"},
    ),
    "overflow-found-by-free": (
        r"heap-buffer-overflow: free at 0x\w+, 0 bytes after the block of 95 bytes at 0x\w+",
        {"free": "release", "allocated": "take"},
    ),
}


@pytest.fixture(scope="module")
def dumped(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The core of a program that misuses a guarded block, written by gdb where hakmem has reported it."""
    folder = tmp_path_factory.mktemp("cores")
    program = folder / "misuse"
    words = ["gcc", "-I", str(SOURCE.parents[1]), *FLAGS, "-g", str(SOURCE), "-o", str(program), "-pthread"]
    subprocess.run(words, check=True)
    guarded = {"LD_PRELOAD": str(tool.library), "HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"}

    def dump(what: str) -> Path:
        core = folder / f"{what}.core"
        variables = [f"-ex=set environment {name} {value}" for name, value in guarded.items()]
        # A fault stops twice: when it happens, and when hakmem has reported it and lets it end the program.
        again = ["-ex=continue"] if what.endswith(("-read", "-write")) else []
        commands = [*variables, "-ex=run", *again, f"-ex=generate-core-file {core}", "-ex=kill"]
        subprocess.run(
            ["gdb", "-batch", "-nx", "-ex=set startup-with-shell off", *commands, "--args", program, what],
            env=clean_environment(), capture_output=True, check=False, timeout=60, cwd=folder,
        )  # fmt: skip
        if not core.is_file():
            pytest.skip("gdb could not write a core dump here")
        return core

    return dump


@pytest.mark.parametrize("what", MISUSES)
def test_the_stacks_have_names(tool: Tool, dumped: Callable[[str], Path], what: str) -> None:
    core, (words, functions) = dumped(what), MISUSES[what]
    report = json.loads(tool("core", core, "--json").stdout)["guard_report"]
    assert [stack["what"] for stack in report["stacks"]] == list(functions)
    for stack in report["stacks"]:
        named = [frame["function"] for frame in stack["frames"] if frame["file"].endswith(SOURCE.name)]
        assert functions[stack["what"]] in named, stack
    shown = tool("core", core).stdout
    begin = rf"\nLast report of a guarded block: {words}\n  {report['what']} by thread \d+:\n    #0 "
    assert re.search(begin, shown), shown
    taken = rf"  allocated by thread \d+:\n(    #.*\n)*    #\d+ take \({SOURCE.name}:\d+\)\n"
    assert re.search(taken, shown), shown


def test_a_core_without_a_report_has_none(tool: Tool, dumped: Callable[[str], Path]) -> None:
    """The program handles the fault itself: hakmem does not hear of it."""
    core = dumped("handled")
    answer = json.loads(tool("core", core, "--json").stdout)
    assert "guard_report" not in answer
