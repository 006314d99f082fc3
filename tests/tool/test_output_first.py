"""An output that cannot be written fails before the work; samples are kept when writing fails after it."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hakmem.base.errors import ExitCode, HakmemError
from hakmem.base.files import check_writable
from hakmem.profile.files import load
from hakmem.profile.session import is_on
from hakmem.target.target import open_process
from results import Compile
from tool.conftest import Tool
from tool.forked import Ending
from tool.processes import running, runs, wait_until
from tool.test_output import FULL, NEEDS_ROOT, node

LONG = "50s"  # longer than a test may take: no test waits for it


sites = runs("sites.c", flags=["-g"])


@pytest.fixture(scope="module")
def profile(tool: Tool, sites: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "x.json"
    assert tool("profile", sites.pid, "--for", "100ms", "--period", "4096", "-o", path).status == 0
    return path


@pytest.fixture(params=["profile", "record", "page", "run", "named", "export"])
def command(
    request: pytest.FixtureRequest, sites: subprocess.Popen[str], run: Path, profile: Path
) -> Callable[[Path], list[str]]:
    """Each command that writes a file, into this one; its work would take longer than the test."""
    pid = str(sites.pid)
    return {
        "profile": lambda path: ["profile", pid, "--for", LONG, "-o", str(path)],
        "record": lambda path: ["record", pid, "--for", LONG, "-o", str(path)],
        "page": lambda path: ["record", str(run), "-o", str(path)],
        "run": lambda path: ["run", "-o", str(path), "--", "sleep", "50"],
        "named": lambda path: ["profile", str(profile), "-o", str(path)],
        "export": lambda path: ["export", str(path), "--every", LONG],
    }[str(request.param)]


def refused(ended: Ending, path: Path) -> None:
    assert ended.status in (ExitCode.FAILED, ExitCode.USAGE), ended
    assert ended.stdout == ""
    assert str(path) in ended.stderr or str(path.parent) in ended.stderr
    assert len(ended.stderr.splitlines()) <= 4  # one sentence, or click's usage


def test_no_such_folder(tool: Tool, command: Callable[[Path], list[str]], tmp_path: Path) -> None:
    path = tmp_path / "nosuch" / "x.json"
    ended = tool(*command(path))
    refused(ended, path)
    assert ended.stderr == f"hakmem: no such directory: {path.parent}; create it, or choose another file\n"


def test_a_folder_in_its_place(tool: Tool, command: Callable[[Path], list[str]], tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.mkdir()
    refused(tool(*command(path)), path)


@pytest.mark.parametrize(
    "words", ["profile {pid} --for 50s -o {path}", "run --profile -o {path} -- sleep 50"]
)
def test_an_ending_that_tells_no_format(
    tool: Tool, sites: subprocess.Popen[str], tmp_path: Path, words: str
) -> None:
    ended = tool(*words.format(pid=sites.pid, path=tmp_path / "x.txt").split())
    assert ended.status == ExitCode.FAILED
    assert "tells no format" in ended.stderr


def test_a_fifo_is_not_opened_by_the_check(tmp_path: Path) -> None:
    """Its reader would see the end; without a reader it would hang."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    check_writable(path)
    with pytest.raises(HakmemError, match="Too many levels of symbolic links"):
        (tmp_path / "loop").symlink_to("loop")
        check_writable(tmp_path / "loop")


# ---- afterwards ----------------------------------------------------------------------------------------


@NEEDS_ROOT
def test_one_file_that_fails_costs_no_other(tool: Tool, sites: subprocess.Popen[str], tmp_path: Path) -> None:
    """A full disk: the other file is there, the table is printed, and the profile is kept elsewhere."""
    full, good = node(tmp_path / "full.json", FULL), tmp_path / "good.json"
    words = ["profile", sites.pid, "--for", "1s", "--period", "4096", "-o", full, "-o", good]
    ended = tool(*words, TMPDIR=str(tmp_path))
    assert ended.status == ExitCode.FAILED
    complaint = r"cannot write \S+full.json: No space left on device; the profile is in (.*)\n"
    said = re.search(complaint, ended.stderr)
    assert said, ended.stderr
    assert load(good).samples
    assert load(Path(said[1])).samples
    assert "Live blocks by site" in ended.stdout


@pytest.mark.long("a second of processor time")
def test_a_terminal_that_is_gone_costs_no_file(
    tool: Tool, sites: subprocess.Popen[str], tmp_path: Path
) -> None:
    """Standard output is a pipe without a reader."""
    path = tmp_path / "x.json"
    words = [tool.path, "profile", str(sites.pid), "--for", "1s", "--period", "4096", "-o", path]
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(words, stdout=writing, stderr=subprocess.DEVNULL) as process:
        os.close(writing)
    assert process.returncode != 0
    assert load(path).samples


def test_ctrl_c_twice_ends_the_names_and_not_the_profile(
    tool: Tool, sites: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one comes while names are looked up."""
    from hakmem.base.signals import Stopped

    def interrupted(*_: object) -> None:
        raise Stopped(signal.SIGINT)

    monkeypatch.setattr("hakmem.profile.names.name_addresses", interrupted)
    path = tmp_path / "x.json"
    ended = tool("profile", sites.pid, "--for", "200ms", "--period", "4096", "-o", path)
    assert ended.status == 0, ended.stderr
    assert "interrupted while names were looked up" in ended.stderr
    assert load(path).samples


# ---- a stopped process ---------------------------------------------------------------------------------


@pytest.mark.long("3 seconds of processor time")
def test_a_stopped_process_has_no_length(tool: Tool, compiled: Compile, lib: Path) -> None:
    """The heading had the length of the profile before."""
    with running([compiled("sites", "-g")], lib) as process:
        first = tool("profile", process.pid, "--for", "1s", "--period", "4096")
        assert re.match(r".*\(process \d+ on hakmem \S+\), [\d.]+ m?s\n", first.stdout), first.stdout
        wait_until(lambda: not is_on(open_process(process.pid)), "it stays on")
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: open_process(process.pid).process.state == "T", "it does not stop")  # type: ignore[union-attr]
        shown = tool("profile", process.pid, "--for", "200ms")
    assert shown.status == 0, shown.stderr
    heading, samples = shown.stdout.splitlines()[:2]
    assert re.fullmatch(r".*\(process \d+ on hakmem \S+\)", heading), heading
    assert re.fullmatch(r"([\d,]+) samples \(\1 from earlier profiles\)", samples), samples
