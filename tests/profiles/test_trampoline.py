"""Stacks go through code that CPython makes for profilers (-X perf): all of its functions are in them."""

import os
import platform
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from preload import clean_environment
from results import Find
from tool.conftest import Tool

SOURCE = Path(__file__).parent / "programs" / "trampoline.c"
PYTHON = """
kept = []
def leaf():
    kept.append(bytearray(1 << 20))
def outer():
    leaf()
for _ in range(10):
    outer()
print("leaked", flush=True)
input()
"""


def folded(tool: Tool, words: list[str | Path], out: Path) -> list[list[str]]:
    """The stacks of blocks of 1 MiB, outermost frame first, of a program that leaks and waits."""
    profiled = {"LD_PRELOAD": str(tool.library), "HAKMEM_PROFILE": "65536"}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment() | profiled
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        try:
            assert child.stdout.readline() == "leaked\n"
            assert tool("profile", child.pid, "-o", out).status == 0
        finally:
            child.stdin.write("\n")
            child.stdin.close()
            child.wait()
            with suppress(OSError):
                Path(f"/tmp/perf-{child.pid}.map").unlink()
    rows = (line.rpartition(" ") for line in out.read_text().splitlines())
    return [stack.split(";") for stack, _, size in rows if int(size) >= 10 << 20]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="elsewhere such code has a frame pointer")
@pytest.mark.parametrize("flags", ["-fomit-frame-pointer", "-fno-omit-frame-pointer"])
def test_code_that_only_calls(tool: Tool, tmp_path: Path, flags: str) -> None:
    program = tmp_path / "trampoline"
    subprocess.run(["gcc", "-O2", "-fno-optimize-sibling-calls", flags, SOURCE, "-o", program], check=True)
    [frames] = folded(tool, [program], tmp_path / "x.folded")
    named = [frame for frame in frames if frame in ("main", "evaluate", "leak")]
    assert named == ["main", *["evaluate"] * 4, "leak"]
    assert "[incomplete stack]" not in frames


def test_functions_of_python(tool: Tool, tmp_path: Path, program: Find) -> None:
    python = next(filter(knows_perf, map(str, pythons())), None) or program("python3.12")
    if not knows_perf(str(python)):
        pytest.skip("no Python here has -X perf (3.12 and newer, on Linux)")
    script = tmp_path / "leak.py"
    script.write_text(PYTHON)
    stacks = folded(tool, [python, "-X", "perf", script], tmp_path / "x.folded")
    [frames] = [stack for stack in stacks if any("leaf" in frame for frame in stack)]
    named = [frame.partition(" ")[0] for frame in frames if "py::" in frame]
    assert named == ["py::<module>", "py::outer", "py::leaf"]
    assert "[incomplete stack]" not in frames


def pythons() -> list[Path]:
    """Those that the machine has, in the search path or as pyenv installs them."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(":")]
    folders += sorted(Path.home().glob(".pyenv/versions/*/bin"))
    return [path for folder in folders for path in sorted(folder.glob("python3.1[2-9]"))]


def knows_perf(python: str) -> bool:
    step = subprocess.run(
        [python, "-X", "perf", "-c", "import sys; sys.exit(not sys.is_stack_trampoline_active())"],
        capture_output=True,
        check=False,
    )
    return step.returncode == 0
