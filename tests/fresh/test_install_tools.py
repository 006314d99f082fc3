"""scripts/install-tools: what is missing is named at once, for all groups, and optional groups stop nothing.

The script under test is a copy beside an apt-install that installs nothing; PATH decides which tools are
there."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from results import captured

INSTALL_TOOLS = Path(__file__).resolve().parents[2] / "scripts" / "install-tools"
APT_INSTALL = """#!/bin/sh
echo "$*" >>"$(dirname "$0")/asked"
exit 1
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """A folder of both scripts, and bin/ with the commands that they use."""
    shutil.copy(INSTALL_TOOLS, tmp_path)
    (tmp_path / "apt-install").write_text(APT_INSTALL)
    (tmp_path / "apt-install").chmod(0o755)
    (tmp_path / "bin").mkdir()
    for command in ("sh", "cat", "dirname", "sort"):
        (tmp_path / "bin" / command).symlink_to(f"/usr/bin/{command}")
    return tmp_path


def has(scripts: Path, *commands: str) -> None:
    for command in commands:
        (scripts / "bin" / command).symlink_to("/usr/bin/true")


def run(scripts: Path, *groups: str) -> subprocess.CompletedProcess[str]:
    return captured([scripts / "install-tools", *groups], env={"PATH": str(scripts / "bin")})


def asked(scripts: Path) -> list[str]:
    path = scripts / "asked"
    return path.read_text().splitlines() if path.exists() else []


def test_nothing_is_said_when_all_is_there(scripts: Path) -> None:
    has(scripts, "g++", "sqlite3", "cargo")
    done = run(scripts, "quick", "rust")
    assert (done.returncode, done.stdout, done.stderr, asked(scripts)) == (0, "", "", [])


def test_all_groups_are_asked_for_at_once(scripts: Path) -> None:
    has(scripts, "sqlite3")
    assert run(scripts, "quick", "rust", "lint").returncode == 1
    assert asked(scripts) == ["cargo-web|cargo clang clang-format clang-tidy g++"]


def test_an_optional_group_is_gone_without(scripts: Path) -> None:
    has(scripts, "cargo")
    done = run(scripts, "rust", "--optional", "quick")
    assert (done.returncode, done.stderr) == (0, "hakmem: going on without them\n")
    assert asked(scripts) == ["g++ sqlite3"]


def test_a_needed_group_is_not(scripts: Path) -> None:
    done = run(scripts, "rust", "--optional", "quick")
    assert (done.returncode, done.stderr) == (1, "")
    assert asked(scripts) == ["cargo-web|cargo g++ sqlite3"]


def test_an_unknown_group_is_named(scripts: Path) -> None:
    done = run(scripts, "--optional", "quick", "none-such")
    assert done.returncode == 2 and "no group is called none-such" in done.stderr
    assert asked(scripts) == []


def test_make_run_installs_what_the_library_needs() -> None:
    """No library of the tests, no module of Python."""
    planned = captured(["make", "-n", "-B", "run"], cwd=INSTALL_TOOLS.parents[1], check=True).stdout
    assert set(re.findall(r"scripts/install-tools (.*)", planned)) == {"library"}
    (table,) = re.findall(r" library\) cat <<'TABLE' ;;\n(.*?)TABLE", INSTALL_TOOLS.read_text(), re.DOTALL)
    assert {line.split()[0] for line in table.splitlines()} == set(
        "binutils cmake gcc libc6-dev ninja-build python3".split()
    )
