"""Checks that Ubuntu's compilers add unasked do not come into the library (cmake/flags.cmake): its code is
the same wherever it is built."""

import json
import platform
import shlex
import subprocess
from pathlib import Path

import pytest
from results import captured

# What Ubuntu's gcc does without being told, and how its work shows.
ADDED = ("-fstack-protector-strong", "-fstack-clash-protection", "-fcf-protection", "-D_FORTIFY_SOURCE=3")
SHOWS = ("__stack_chk_fail", "__stack_chk_guard", "_chk>", "_chk@", "_chk-", "endbr64")
# With arrays on the stack.
SOURCES = ("src/os/os_linux.c", "src/os/cgroup.c", "src/report/report.c")


def command_of(root: Path, source: str) -> list[str]:
    for entry in json.loads((root / "build/compile_commands.json").read_text()):
        if Path(entry["file"]) == root / source and "hakmem_objects.dir" in entry["command"]:
            return shlex.split(entry["command"])
    raise AssertionError(f"{source} is not compiled")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the options are those of x86-64")
@pytest.mark.parametrize("source", SOURCES)
def test_checks_of_the_compiler_stay_out(root: Path, lib: Path, source: str, tmp_path: Path) -> None:
    compiler, *options = command_of(root, source)
    options[options.index("-o") + 1] = str(tmp_path / "one.o")
    subprocess.run([compiler, *ADDED, *options], cwd=lib.parent, check=True)
    code = captured(["objdump", "-dr", tmp_path / "one.o"], check=True).stdout
    assert "ret" in code
    assert not [mark for mark in SHOWS if mark in code]
