"""hakmem symbolize names the stacks of a guarded block's report, in a program whose functions the dynamic
linker does not know."""

import re
import subprocess
from pathlib import Path

import pytest
from preload import clean_environment
from results import captured
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
