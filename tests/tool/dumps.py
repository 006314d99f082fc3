"""Core dumps of processes that go on, by gdb."""

import shutil
from pathlib import Path

import pytest
from results import captured

TIMEOUT_S = 120.0
VSYSCALL = "0xffffffffff600000"
HAS_GCORE = shutil.which("gcore") is not None
NO_GCORE = "gcore is missing (Debian's package gdb)"
needs_gcore = pytest.mark.skipif(not HAS_GCORE, reason=NO_GCORE)


def dumped(pid: int, folder: Path, has_closed: bool = False) -> Path:
    """gdb leaves out what it cannot read, says so, and ends with 0: always the kernel's own page, and where a
    mapping has closed pages (MADV_GUARD_INSTALL, as hardened mode has them) its rest from there on."""
    words = ["gcore", "-o", str(folder / "core"), str(pid)]
    step = captured(words, check=True, timeout=TIMEOUT_S)
    unread = [line for line in step.stderr.splitlines() if "Memory read failed" in line]
    assert has_closed or not [line for line in unread if VSYSCALL not in line], step.stderr
    return folder / f"core.{pid}"
