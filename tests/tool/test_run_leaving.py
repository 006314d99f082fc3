"""`hakmem run --stats` and `--json`: a program that leaves without its report is told of, and no other."""

import os
import subprocess
from pathlib import Path

import pytest
from tool.conftest import Tool
from tool.processes import wait_until

LEFT = "exited without its report: "
PYTHON = "/usr/bin/python3"
# What it does, what is said of it, its status.
LEAVING = [
    ([PYTHON, "-c", "import os; os._exit(3)"], "it called _exit", 3),
    (["dash", "-c", "exit 3"], "it called _exit", 3),
    (["sh", "-c", "kill -9 $$"], "killed by signal 9 (Killed)", -9),
    (
        [PYTHON, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"],
        "killed by signal 15 (Terminated)",
        -15,
    ),
    (["sh", "-c", "exec env -u LD_PRELOAD sleep 3"], "or executed a program without hakmem", 0),
]


def marks(folder: Path) -> list[Path]:
    """What the watcher has in the folder for temporary files."""
    return sorted(folder.glob("hakmem-run-*"))


@pytest.mark.parametrize(("words", "why", "status"), LEAVING)
@pytest.mark.parametrize("kind", ["--stats", "--json"])
def test_why_it_left(tool: Tool, tmp_path: Path, kind: str, words: list[str], why: str, status: int) -> None:
    (tmp_path / "report").write_text("of an older run")
    options = [kind, tmp_path / "report"] if kind == "--json" else [kind]
    ended = tool("run", *options, "--", *words, TMPDIR=str(tmp_path))
    assert ended.status == status
    (line,) = (line for line in ended.stderr.splitlines() if LEFT in line)
    assert line.startswith(f"hakmem: {words[0]} (PID ")
    assert why in line
    wait_until(lambda: not marks(tmp_path), "the mark's folder stays")


@pytest.mark.parametrize("words", [["ls"], [PYTHON, "-c", "exit(3)"], ["sh", "-c", "cd / && exec ls"]])
@pytest.mark.parametrize("kind", ["--stats", "--json"])
def test_nothing_is_said_of_a_report_that_came(
    tool: Tool, tmp_path: Path, kind: str, words: list[str]
) -> None:
    options = [kind, tmp_path / "%p.json"] if kind == "--json" else [kind]
    ended = tool("run", *options, "--", *words, TMPDIR=str(tmp_path))
    assert LEFT not in ended.stderr
    assert ("fetched past the magazines" in ended.stderr) == (kind == "--stats")
    assert len(list(tmp_path.glob("*.json"))) == (1 if kind == "--json" else 0)
    wait_until(lambda: not marks(tmp_path), "the mark's folder stays")


def test_reports_into_a_device_are_not_missed(tool: Tool) -> None:
    assert LEFT not in tool("run", "--json", "/dev/null", "--", "ls").stderr


def test_what_could_not_be_run_left_nothing(tool: Tool, tmp_path: Path) -> None:
    """An interpreter that is missing shows at exec only."""
    broken = tmp_path / "broken"
    broken.write_bytes(Path("/bin/true").read_bytes().replace(b"/lib64/ld-linux", b"/lib64/no-linux"))
    broken.chmod(0o755)
    ended = tool("run", "--stats", "--", broken, TMPDIR=str(tmp_path))
    assert ended.status == 126
    assert LEFT not in ended.stderr
    wait_until(lambda: not marks(tmp_path), "the mark's folder stays")


def test_the_watcher_is_not_the_programs_child_and_holds_nothing_of_it(tool: Tool) -> None:
    """wait() finds no child; a pipe that the program was given ends when the program closes it."""
    read_end, write_end = os.pipe()
    code = (
        "import os, sys\n"
        "try:\n    os.wait()\nexcept ChildProcessError:\n    print('none')\n"
        f"os.close({write_end}); print(len(os.listdir('/proc/self/fd')), flush=True); sys.stdin.read()\n"
    )
    words = [str(tool.path), "run", "--stats", "--", PYTHON, "-c", code]
    process = subprocess.Popen(
        words,
        pass_fds=[write_end],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"HAKMEM_LIBRARY": str(tool.library)},
    )
    os.close(write_end)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "none\n"
        assert process.stdout.readline() == "5\n", "0, 1, 2, the library's copy of 2, and the listing's own"
        assert os.read(read_end, 1) == b"", "nobody else has it"
    finally:
        os.close(read_end)
        _, errors = process.communicate("")
    assert LEFT not in errors


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_nothing_is_said_of_one_that_changed_its_user(tool: Tool) -> None:
    """It could not have made the mark; its report came."""
    code = "import os, time; os.setgid(65534); os.setuid(65534); time.sleep(3)"
    ended = tool("run", "--stats", "--", PYTHON, "-c", code)
    assert "fetched past the magazines" in ended.stderr
    assert LEFT not in ended.stderr
