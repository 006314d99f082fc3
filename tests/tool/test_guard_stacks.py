"""The stacks of a guarded block's report have names: in hakmem symbolize, and in hakmem stat."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from preload import clean_environment
from results import Find, captured
from tool.conftest import Tool

SOURCE = Path(__file__).resolve().parents[1] / "guard" / "misuse.c"
FLAGS = ["-O1", "-fno-optimize-sibling-calls", "-fno-inline"]
STACK = re.compile(r"hakmem:   (\w+) by thread \d+")


def stacks_of(report: str) -> dict[str, str]:
    """The text of each stack by what it is of."""
    found: dict[str, str] = {}
    what = ""
    for line in report.splitlines():
        if head := STACK.match(line):
            what = head[1]
        elif what and re.match(r"hakmem:     ", line):
            found[what] = found.get(what, "") + line + "\n"
    return found


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("flags", [["-g"], []], ids=["lines", "functions"])
def test_each_stack_of_a_guard_report(tool: Tool, flags: list[str], tmp_path: Path) -> None:
    program, report = tmp_path / "misuse", tmp_path / "report"
    words = ["gcc", "-I", str(SOURCE.parents[1]), *FLAGS, *flags, str(SOURCE), "-o", str(program), "-pthread"]
    subprocess.run(words, check=True)
    guarded = {"LD_PRELOAD": str(tool.library), "HAKMEM_GUARD": "1", "HAKMEM_GUARD_RATE": "1"}
    step = captured([program, "use-after-free-read"], env=clean_environment() | guarded, cwd=tmp_path)
    assert "hakmem: use-after-free" in step.stderr
    for name in ("take", "release"):
        assert not re.search(rf"\b{name}\b", step.stderr), "the dynamic linker does not know it"
    report.write_text(step.stderr)
    named = tool("symbolize", report)
    assert (named.status, named.stderr) == (0, "")
    stacks = stacks_of(named.stdout)
    assert set(stacks) == {"read", "allocated", "freed"}
    for what, function in (("read", "main"), ("allocated", "take"), ("freed", "release")):
        line = rf" at \S*{SOURCE.name}:\d+" if flags else ""
        assert re.search(rf" {function}{line} \(", stacks[what]), named.stdout


# ---- hakmem stat: the last report, who misused, took and freed the block ---------------------------------


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
        r"misaligned free: free at 0x\w+, 16 bytes into the block of 96 bytes at 0x\w+",
        {"free": "release", "allocated": "take"},
    ),
    "overflow-found-by-free": (
        r"overflow seen at free: free at 0x\w+, 0 bytes into the block of 95 bytes at 0x\w+",
        {"free": "release", "allocated": "take"},
    ),
}


@pytest.fixture(scope="module")
def dumped(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Find:
    """The core of a program that misuses a guarded block, written by gdb where hakmem has reported it."""
    if shutil.which("gdb") is None:
        pytest.skip("gdb is missing (Debian's package gdb)")
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


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("what", MISUSES)
def test_the_stacks_have_names(tool: Tool, dumped: Find, what: str) -> None:
    core, (words, functions) = dumped(what), MISUSES[what]
    report = json.loads(tool("stat", core, "--json").stdout)["guard_report"]
    assert [stack["what"] for stack in report["stacks"]] == list(functions)
    for stack in report["stacks"]:
        named = [frame["function"] for frame in stack["frames"] if frame["file"].endswith(SOURCE.name)]
        assert functions[stack["what"]] in named, stack
    shown = tool("stat", core).stdout
    begin = rf"\nLast report of a guarded block: {words}\n  {report['what']} by thread \d+:\n    #0 "
    assert re.search(begin, shown), shown
    taken = rf"  allocated by thread \d+:\n(    #.*\n)*    #\d+ take \({SOURCE.name}:\d+\)\n"
    assert re.search(taken, shown), shown


def test_a_core_without_a_report_has_none(tool: Tool, dumped: Find) -> None:
    """The program handles the fault itself: hakmem does not hear of it."""
    core = dumped("handled")
    answer = json.loads(tool("stat", core, "--json").stdout)
    assert "guard_report" not in answer
