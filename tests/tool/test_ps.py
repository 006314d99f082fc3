"""hakmem ps: who runs on what."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tool.conftest import Stepper, Tool

OTHERS = {
    "jemalloc": "libjemalloc.so.2",
    "mimalloc": "libmimalloc.so.2*",
    "tcmalloc": "libtcmalloc_minimal.so.4",
}
OTHERS |= {"tbbmalloc": "libtbbmalloc_proxy.so.2"}


def allocator_of(tool: Tool, pid: int) -> tuple[str, bool]:
    line = next(line for line in tool.json("ps")["processes"] if line["pid"] == pid)
    assert line["rss_bytes"] > 0
    return line["allocator"], line["is_bundled"]


def wait_until_mapped(pid: int, name: str) -> None:
    deadline = time.monotonic() + 10
    while name not in Path(f"/proc/{pid}/maps").read_text():
        assert time.monotonic() < deadline, f"{name} is not mapped"
        time.sleep(0.01)


def test_hakmem_and_its_version(
    tool: Tool, compiled: Callable[..., Path], stepper: Callable[..., Stepper], static_lib: Path
) -> None:
    preloaded = stepper([compiled("blocks")], "begun")
    linked = stepper([compiled("blocks", "-static", "-s", static_lib)], "begun", preload=False)
    version = tool("--version").stdout.split()[-1]
    lines = {line["pid"]: line for line in tool.json("ps")["processes"]}
    for pid in (preloaded.pid, linked.pid):
        assert (lines[pid]["allocator"], lines[pid]["version"]) == ("hakmem", version)
    shown = tool("ps", COLUMNS="80").stdout.splitlines()
    assert max(map(len, shown)) <= 80
    assert any(str(preloaded.pid) in line and f"hakmem {version}" in line for line in shown)


def test_glibc(tool: Tool, on_hakmem: Callable[..., subprocess.Popen[bytes]]) -> None:
    process = on_hakmem(["sleep", "60"], library=None)
    wait_until_mapped(process.pid, "libc.so.6")
    assert allocator_of(tool, process.pid) == ("glibc", False)


def test_static(tool: Tool, compiled: Callable[..., Path], stepper: Callable[..., Stepper]) -> None:
    for flags in (["-static"], ["-static-pie"]):
        program = stepper([compiled("blocks", *flags)], "begun", preload=False)
        assert allocator_of(tool, program.pid) == ("static", False)


def test_bundled(
    tool: Tool, compiled: Callable[..., Path], on_hakmem: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = on_hakmem([compiled("own_malloc")], library=None)
    wait_until_mapped(process.pid, "own_malloc")
    assert allocator_of(tool, process.pid) == ("mimalloc", True)


@pytest.mark.parametrize("name", OTHERS)
def test_other_libraries(tool: Tool, on_hakmem: Callable[..., subprocess.Popen[bytes]], name: str) -> None:
    found = sorted(Path("/usr/lib").glob(f"*/{OTHERS[name]}"))
    if not found:
        pytest.skip(f"{name} is not installed (make bench does)")
    process = on_hakmem(["sleep", "60"], library=found[0])
    wait_until_mapped(process.pid, "libc.so.6")
    assert allocator_of(tool, process.pid) == (name, False)
