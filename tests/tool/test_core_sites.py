"""`hakmem profile` shows the heap profile that was on when the process died."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hakmem.profile.live import read_profile
from hakmem.profile.session import is_on
from hakmem.target.target import open_process
from tool.conftest import Tool
from tool.dumps import dumped, needs_gcore
from tool.processes import hakmem, running, wait_until

pytestmark = needs_gcore

KEEPS = "keeps (sites.c:"
SAMPLES_MIN = 50


def sampled(pid: int) -> None:
    """Until the profile is on, and has samples."""
    hakmem("profile", pid, "--on")
    wait_until(lambda: is_on(open_process(pid)), "it does not go on")
    wait_until(lambda: len(read_profile(open_process(pid)).samples) > SAMPLES_MIN, "no samples", 60.0)


@pytest.mark.long("4 seconds to write a core")
def test_the_sites(tool: Tool, sites: subprocess.Popen[str], tmp_path: Path) -> None:
    sampled(sites.pid)
    core = dumped(sites.pid, tmp_path)
    said = tool("profile", core)
    assert said.status == 0, said.stderr
    assert KEEPS in said.stdout
    answer = tool.json("profile", core)
    names = [frame["function"] for site in answer["sites"] for frame in site["stack"][:1]]
    assert "keeps" in names
    assert answer["total_bytes"] == tool.json("stat", core)["memory"]["live_bytes"]


def test_without_a_profile_there_is_none(tool: Tool, sites: subprocess.Popen[str], tmp_path: Path) -> None:
    core = dumped(sites.pid, tmp_path)
    assert "the core dump has no samples" in tool("profile", core).stderr


@pytest.mark.long("3 seconds of processor time")
def test_names_of_files_that_have_moved(tool: Tool, sites_program: Path, lib: Path, tmp_path: Path) -> None:
    """--files is where the names are read, too."""
    moved = tmp_path / "there" / "sites"
    moved.parent.mkdir()
    shutil.copy(sites_program, moved)
    with running([moved], lib) as process:
        sampled(process.pid)
        core = dumped(process.pid, tmp_path)
    moved.rename(tmp_path / "sites")
    ended = tool("profile", core, "--files", tmp_path / "sites")
    assert ended.status == 0, ended.stderr
    assert KEEPS in ended.stdout
