"""A second profile of a process, one of a process that does nothing, a server that is not there."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from hakmem.base.errors import ExitCode
from hakmem.profile.files import load
from tool.conftest import Tool
from tool.processes import running


def allocated_bytes(tool: Tool, pid: int, length: str) -> float:
    ended = tool("profile", pid, "--for", length, "--allocated", "--json")
    assert ended.status == 0, ended.stderr
    return float(json.loads(ended.stdout)["total_bytes"])


def test_allocated_counts_from_its_own_beginning(tool: Tool, sites: subprocess.Popen[str]) -> None:
    """The sampler's sums go on; the second profile is a twentieth as long as the first."""
    first = allocated_bytes(tool, sites.pid, "4s")
    assert allocated_bytes(tool, sites.pid, "200ms") < first


def test_a_process_that_does_nothing(tool: Tool, lib: Path) -> None:
    """No thread has seen the profile: it has no length, not one since 1970."""
    with running(["/bin/sh", "-c", "echo ready; exec sleep 600"], lib) as process:
        ended = tool("profile", process.pid, "--for", "100ms")
    assert ended.status == 0, ended.stderr
    assert not re.search(r"\d h ", ended.stdout), ended.stdout


def test_a_rate_that_the_cost_does_not_allow(tool: Tool, sites: subprocess.Popen[str]) -> None:
    ended = tool("profile", sites.pid, "--for", "1s", "--rate", "1000000")
    assert "samples a second instead of 1,000,000: " in ended.stderr
    assert "samples a second" not in tool("profile", sites.pid, "--for", "1s", "--rate", "1").stderr
    fixed = tool("profile", sites.pid, "--rate", "100", "--period", "4096")
    assert fixed.status == ExitCode.USAGE
    assert "--period fixes what --rate adapts" in fixed.stderr


def test_off_takes_no_settings(tool: Tool, sites: subprocess.Popen[str]) -> None:
    ended = tool("profile", sites.pid, "--off", "--for", "3s")
    assert ended.status == ExitCode.USAGE
    assert "--off ends a profile" in ended.stderr


def test_what_no_server_took_is_kept(tool: Tool, sites: subprocess.Popen[str]) -> None:
    ended = tool("profile", sites.pid, "--for", "1s", "--push", "http://127.0.0.1:9")
    assert ended.status == ExitCode.FAILED
    said = re.fullmatch(
        r"hakmem: cannot send the profile to http://\S*: Connection refused; the profile is in (.*)\n",
        ended.stderr,
    )
    assert said, ended.stderr
    kept = Path(said[1])
    assert load(kept).samples
    kept.unlink()


@pytest.mark.parametrize(
    ("first", "second"), [("--live", "--allocated"), ("--age", "--peak"), ("--on", "--off")]
)
def test_two_flags_that_exclude_each_other(
    tool: Tool, sites: subprocess.Popen[str], first: str, second: str
) -> None:
    """The last one won, silently."""
    ended = tool("profile", sites.pid, first, second)
    assert ended.status == ExitCode.USAGE
    assert f"{first} and {second} exclude each other" in ended.stderr


def test_wide_intervals_are_told(tool: Tool, sites: subprocess.Popen[str]) -> None:
    """With one sample in 64 MiB there are a few; with one in 4 KiB there are thousands."""
    wide = tool("profile", sites.pid, "--for", "1s", "--period", str(1 << 26), "--allocated")
    count = int(wide.stdout.splitlines()[1].split()[0].replace(",", ""))
    # A site that has all of six samples has more than half of the bytes.
    assert ("The intervals are wide" in wide.stdout) or count == 0 or count >= 6, wide.stdout
    assert "exact" not in wide.stdout
    narrow = tool("profile", sites.pid, "--for", "2s", "--period", "4096", "--allocated")
    assert "The intervals are wide" not in narrow.stdout
