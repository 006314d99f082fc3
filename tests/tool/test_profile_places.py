"""Heap profiles of programs in containers, under filters of system calls, and linked statically."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from results import Compile
from tool.conftest import Tool
from tool.processes import running, wait_until

KEEPS, PASSES = "keeps", "passes"


def first_functions(answer: str) -> dict[str, float]:
    """The bytes of each function that a site begins in."""
    found: dict[str, float] = {}
    for site in json.loads(answer)["sites"]:
        name = site["stack"][0]["function"] if site["stack"] else ""
        found[name] = found.get(name, 0) + site["bytes"]
    return found


@contextmanager
def in_namespaces(words: list[str], program: Path, lib: Path) -> Iterator[int]:
    """The PID, as seen from here, of the program in a file system that is not ours."""
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip(f"cannot be made here: {' '.join(words)}")
    script = f"mount -t tmpfs none /mnt && cp {program} /mnt/app && LD_PRELOAD={lib} exec /mnt/app"
    with running([*words, "sh", "-c", script], lib, {"LD_PRELOAD": ""}) as outer:
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        pid = int(wait_until(lambda: children.read_text().split(), "no child")[0])
        try:
            yield pid
        finally:
            os.kill(pid, signal.SIGKILL)


CONTAINER = ["unshare", "--user", "--map-root-user", "--pid", "--mount", "--fork", "--mount-proc"]


@pytest.mark.long("a second of processor time each")
@pytest.mark.parametrize("clock", [[], ["--time", "--monotonic", "100000"]], ids=["", "own clock"])
def test_in_a_container(clock: list[str], tool: Tool, sites_program: Path, lib: Path) -> None:
    """Its PID is another one inside, its file lies where nobody sees it, its lease ends by its own clock."""
    with in_namespaces([*CONTAINER, *clock], sites_program, lib) as pid:
        ended = tool("profile", pid, "--for", "2s", "--json")
        assert ended.status == 0, ended.stderr
        assert first_functions(ended.stdout)[KEEPS] > 0
        assert tool("profile", pid, "--on", "--for", "60s").status == 0
        assert KEEPS in tool("profile", pid, "--of", "live").stdout
        assert tool("profile", pid, "--off").status == 0


@pytest.mark.long("a second of processor time")
def test_under_a_filter(tool: Tool, compiled: Compile, lib: Path) -> None:
    """Whatever a sample needs is among the calls that every malloc makes; others end the process."""
    with running([compiled("sites_filtered", "-g")], lib) as process:
        for _ in range(2):
            ended = tool("profile", process.pid, "--for", "1s", "--json")
            assert ended.status == 0, ended.stderr
            assert first_functions(ended.stdout)[KEEPS] > 0
        assert process.poll() is None


def test_linked_statically(tool: Tool, compiled: Compile, static_lib: Path, lib: Path) -> None:
    """Even without a stack: what was allocated is a site's."""
    with running([compiled("sites", "-static", static_lib)], lib, {"LD_PRELOAD": ""}) as process:
        for mode in ("live", "allocated"):
            ended = tool("profile", process.pid, "--for", "1s", "--period", "65536", "--of", mode, "--json")
            assert ended.status == 0, ended.stderr
            answer = json.loads(ended.stdout)
            assert sum(site["samples"] for site in answer["sites"]) > 10, mode
        assert sum(site["bytes"] for site in answer["sites"]) > 0.9 * answer["total_bytes"]
