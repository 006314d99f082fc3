"""A process whose main thread has ended before the others: under its PID is a zombie without memory."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hakmem.census.snapshot import open_process, take
from hakmem.target.process import Process
from results import Compile
from tool.conftest import Tool
from tool.processes import running, wait_until

KEPT_BYTES = 5_000_000


@pytest.fixture(scope="module")
def program(compiled: Compile) -> Path:
    return compiled("main_ends", "-g", "-pthread")


@pytest.fixture(scope="module")
def outlived(program: Path, lib: Path) -> Iterator[subprocess.Popen[str]]:
    with running([program], lib) as process:
        wait_for_zombie(process)
        yield process


def wait_for_zombie(process: subprocess.Popen[str]) -> None:
    leader = Path(f"/proc/{process.pid}/task/{process.pid}/stat")
    wait_until(lambda: leader.read_text().rpartition(")")[2].split()[0] == "Z", "it is no zombie")


def test_it_ends_while_it_is_looked_at(program: Path, lib: Path) -> None:
    """As `hakmem top` and `record` do."""
    with running([program, "later"], lib) as process:
        target = open_process(process.pid)
        assert take(target).memory.live_bytes < KEPT_BYTES
        process.send_signal(signal.SIGUSR1)
        wait_for_zombie(process)
        wait_until(lambda: take(target).memory.live_bytes > KEPT_BYTES, "its memory is not seen")
        after = take(target)
        assert after.process is not None
        assert after.process.rss_bytes > KEPT_BYTES
        target.check_same()


def test_it_is_read(outlived: subprocess.Popen[str], tool: Tool) -> None:
    snapshot = tool.json("stat", outlived.pid)
    assert snapshot["memory"]["live_bytes"] > KEPT_BYTES
    assert snapshot["pid"] == outlived.pid
    why = tool.json("why", outlived.pid)
    assert sum(line["bytes"] for line in why["lines"]) > KEPT_BYTES


def test_it_is_listed(outlived: subprocess.Popen[str], tool: Tool) -> None:
    lines = {line["pid"]: line for line in tool.json("ps")["processes"]}
    assert lines[outlived.pid]["allocator"] == "hakmem"
    assert lines[outlived.pid]["command"][0].count("main_ends")


def test_it_is_sampled_and_purged(outlived: subprocess.Popen[str], tool: Tool) -> None:
    ended = tool("profile", outlived.pid, "--for", "1s", "--of", "allocated", "--period", "4096", "--json")
    assert ended.status == 0, ended.stderr
    frames = [frame for site in json.loads(ended.stdout)["sites"] for frame in site["stack"]]
    assert "goes_on" in {frame["function"] for frame in frames}
    assert tool("purge", outlived.pid).status == 0


@pytest.mark.parametrize("how", [[], ["--freeze"]], ids=["running", "frozen"])
def test_its_blocks_are_reached(how: list[str], outlived: subprocess.Popen[str], tool: Tool) -> None:
    found = tool.json("leaks", outlived.pid, "--for", "0s", "--wait", "100ms", *how)
    assert found["live"]["bytes"] > KEPT_BYTES
    assert found["definite"]["bytes"] == 0


def test_the_doctor_checks_it(outlived: subprocess.Popen[str], tool: Tool) -> None:
    ended = tool("doctor", outlived.pid)
    assert "hakmem" in ended.stdout, ended.stderr


def test_it_stays_the_same(outlived: subprocess.Popen[str]) -> None:
    process = Process(outlived.pid)
    process.check_same()
    assert process.name.startswith("programs-main")
    assert process.figures().threads > 1
