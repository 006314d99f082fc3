"""hakmem run --harden: hardened mode, and both libraries."""

import shutil
from pathlib import Path

import pytest
from tool.conftest import Tool

ENVIRONMENT = "import os; print(os.environ['LD_PRELOAD'], os.environ.get('HAKMEM_HARDEN'))"
OVERFLOW = """
import ctypes
c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
c.memset(ctypes.c_void_p(c.malloc(40)), 7, 41)
"""


@pytest.mark.parametrize(
    ("options", "level"),
    [
        (["--harden"], "1"),
        (["--harden", "--"], "1"),
        (["--harden=2"], "2"),
        (["--harden=1", "--env", "A=B", "--"], "1"),
        (["--env", "HAKMEM_HARDEN=0", "--harden"], "1"),
    ],
)
def test_it_is_preloaded_first(tool: Tool, options: list[str], level: str) -> None:
    ended = tool("run", *options, "/usr/bin/python3", "-c", ENVIRONMENT, LD_PRELOAD="/nowhere/libhakmem.so")
    fortify = tool.library.with_name("libhakmem-fortify.so")
    assert ended.stdout == f"{fortify}:{tool.library} {level}\n", ended


def test_options_behind_the_program_are_the_programs(tool: Tool) -> None:
    assert tool("run", "--", "echo", "--harden").stdout == "--harden\n"
    assert tool("run", "--harden", "--", "echo", "--harden").stdout == "--harden\n"


def test_level_0_is_none(tool: Tool) -> None:
    ended = tool("run", "--harden=0", "/usr/bin/python3", "-c", ENVIRONMENT)
    assert ended.stdout == f"{tool.library} 0\n"


def test_what_is_no_level_is_told(tool: Tool) -> None:
    for level in ("3", "much", "-1"):
        ended = tool("run", f"--harden={level}", "true")
        assert (ended.status, ended.stdout) == (2, "")
        assert "--harden" in ended.stderr


def test_an_overflow_is_stopped(tool: Tool) -> None:
    ended = tool("run", "--harden", "/usr/bin/python3", "-c", OVERFLOW)
    assert ended.status == -6, ended
    assert ended.stderr.startswith("hakmem: overflow in memset of 0x")
    assert tool("run", "/usr/bin/python3", "-c", OVERFLOW).status == 0


def test_without_the_second_library_the_first_does(tool: Tool, tmp_path: Path) -> None:
    alone = tmp_path / "libhakmem.so"
    shutil.copy(tool.library, alone)
    ended = tool("run", "--harden", "/usr/bin/python3", "-c", ENVIRONMENT, HAKMEM_LIBRARY=str(alone))
    assert (ended.status, ended.stdout) == (0, f"{alone} 1\n")
    assert "hakmem: warning: libhakmem-fortify.so is not beside" in ended.stderr
