"""Processes that cannot be read, and how the tool says so: its exit statuses 1, 3, 4 and 5."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hakmem.base.errors import ExitCode, ProcessGoneError
from hakmem.census.snapshot import open_process, take
from hakmem.doctor import process_checks
from hakmem.launch.contenders import Unusable, contender
from hakmem.target.access import PTRACE_SCOPE
from hakmem.target.corefile import CoreMemory
from hakmem.target.process import Mapping, Process
from results import Compile, captured
from tool.conftest import Start, StartOnHakmem, Tool
from tool.forked import Ending
from tool.processes import wait_until

NOBODY = 65534
YAMA = ("ptrace_scope",) if PTRACE_SCOPE.exists() else ()  # named only where it exists
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
PID_MAX = int(Path("/proc/sys/kernel/pid_max").read_text())
# Everything is imported before the user changes: the user nobody may not read this checkout.
AS_NOBODY = f"""
import os, sys
import hakmem.commands.stat, hakmem.target.locate, hakmem.views.screen, hakmem.views.snapshot_text
import hakmem.cli, hakmem.entry, hakmem.base.signals, hakmem.base.streams
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
sys.exit(hakmem.entry.main(sys.argv[1:]))
"""


COMMANDS = ("stat", "what", "leaks --for 0s --wait 50ms", "leaks --for 0s --freeze", "what 0x1000")
RunOf = Callable[[int], Ending]


@pytest.fixture
def run(tool: Tool, request: pytest.FixtureRequest) -> RunOf:
    """One of COMMANDS, of a process."""
    name, *words = request.param.split()
    return lambda pid: tool(name, pid, *words)


of_each_command = pytest.mark.parametrize("run", COMMANDS, indirect=True)


def ends_with(ended: Ending, status: ExitCode, *words: str) -> None:
    assert ended.status == status, ended
    assert ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    assert ended.stderr.startswith("hakmem: ")
    for word in words:
        assert word in ended.stderr


def test_a_kernel_thread(tool: Tool) -> None:
    kthreadd = 2
    if not Path(f"/proc/{kthreadd}").exists() or Path(f"/proc/{kthreadd}/cmdline").read_text():
        pytest.skip("this container sees no kernel threads")
    ends_with(tool("stat", kthreadd), ExitCode.FAILED, "kernel thread")


def test_process_of_another_user(on_hakmem: StartOnHakmem, tool: Tool) -> None:
    if os.geteuid() != 0:
        ends_with(tool("stat", 1), ExitCode.REFUSED, "belongs to root", *YAMA, "sudo")
        return
    process = on_hakmem(["sleep", "60"])
    words = [sys.executable, "-c", AS_NOBODY, "stat", str(process.pid)]
    step = captured(words)
    ended = Ending(step.returncode, step.stdout, step.stderr)
    ends_with(ended, ExitCode.REFUSED, "belongs to root, you are nobody", *YAMA, "CAP_SYS_PTRACE", "sudo")


@of_each_command
def test_no_such_process(run: RunOf) -> None:
    ends_with(run(PID_MAX + 1), ExitCode.GONE, f"no such process: {PID_MAX + 1}")


@of_each_command
def test_zombie(run: RunOf, on_hakmem: StartOnHakmem) -> None:
    process = on_hakmem(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    ends_with(run(process.pid), ExitCode.GONE, "ended")


@pytest.mark.parametrize("detail", ["full", "counters"])
def test_dying_process(compiled: Compile, stepper: Start, detail: str) -> None:
    """It is killed while it is being read again and again: at some moment, in the middle of a reading."""
    for delay_ms in range(5):
        program = stepper([compiled("crowd"), 200], "ready")
        target = open_process(program.pid)
        threading.Timer(0.02 + delay_ms / 1000, os.kill, (program.pid, signal.SIGKILL)).start()
        with pytest.raises(ProcessGoneError):
            for _ in range(10_000):
                take(target, detail)  # type: ignore[arg-type]


LONG = f"/{'x' * 300}/libhakmem.so"  # longer than names may be: as where a folder may not be searched


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        *((f"{name} LONG", 2, "is neither a PID nor a ") for name in ("why", "profile", "record")),
        *((f"{name} -- LONG", 127, "no such file") for name in ("run", "doctor")),
        ("run --library", 1, "which is not a file"),
    ],
)
def test_a_path_that_cannot_be_looked_at(tool: Tool, words: str, status: int, said: str) -> None:
    variables = {"HAKMEM_LIBRARY": LONG} if "--library" in words else {}
    ended = tool(*words.replace("LONG", LONG).split(), **variables)
    assert ended.status == status
    assert said in ended.stderr


def test_paths_of_others_that_cannot_be_looked_at(tool: Tool, tmp_path: Path) -> None:
    """In a core dump, a report and an environment."""
    core: Any = SimpleNamespace(_moved=[])
    assert CoreMemory._found_path(core, Mapping(0, 1, "r-xp", 0, "", 1, LONG)) is None
    process: Any = SimpleNamespace(path=lambda _name: Path("/"))
    allocator: Any = SimpleNamespace(name="glibc")
    assert process_checks._why_not_preloaded(allocator, process, LONG)[0] == f"there is no {LONG}"
    (tmp_path / "report").write_text(f"hakmem:     #0 0x12 {LONG}+0x3\n")
    assert "not found; its frames stay unresolved" in tool("symbolize", tmp_path / "report").stderr
    with pytest.raises(Unusable, match="no such file"):
        contender(LONG, Path("/bin/true"))


def test_a_pid_that_was_reused_is_told_by_the_start_time() -> None:
    mine = Process(os.getpid())
    other = Process(mine.pid, mine.start_ticks - 1)
    mine.check_same()
    with pytest.raises(ProcessGoneError, match="PID has been reused"):
        other.check_same()


@pytest.mark.skipif(not os.access(LAST_PID, os.W_OK) or os.geteuid() != 0, reason="needs root to choose PIDs")
def test_a_pid_that_the_kernel_gave_again(
    compiled: Compile, stepper: Start, on_hakmem: StartOnHakmem
) -> None:
    old = stepper([compiled("blocks")], "begun")
    target = open_process(old.pid)
    old.end()
    for _ in range(50):  # others may take the number first
        time.sleep(0.02)  # the clock of start times has steps of 10 ms
        LAST_PID.write_text(str(old.pid - 1))
        new = on_hakmem(["sleep", "60"])
        if new.pid == old.pid:
            break
    assert new.pid == old.pid
    with pytest.raises(ProcessGoneError):
        take(target)


def test_a_process_that_becomes_another_program(stepper: Start) -> None:
    """exec keeps PID and start time."""
    program = stepper(["sh", "-c", "echo ready; read line; exec sleep 60"], "ready")
    target = open_process(program.pid)
    take(target)
    program.go_on()
    wait_until(lambda: Path(f"/proc/{program.pid}/comm").read_text() == "sleep\n", "sh does not become sleep")
    for detail in ("full", "counters"):
        with pytest.raises(ProcessGoneError, match="exec"):
            take(target, detail)  # type: ignore[arg-type]


@of_each_command
@pytest.mark.parametrize("number", [0, 2])
def test_another_format_is_refused_with_both_numbers(
    run: RunOf, compiled: Compile, on_hakmem: StartOnHakmem, number: int
) -> None:
    library = compiled("other_format", f"-DFORMAT={number}", "-shared", "-fPIC")
    process = on_hakmem(["sleep", "60"], library=library)
    while library.name not in Path(f"/proc/{process.pid}/maps").read_text():
        time.sleep(0.01)
    words = (f"hakmem 9.9.9, whose statistics have format {number}", "reads format 1")
    ends_with(run(process.pid), ExitCode.VERSIONS, *words)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (
            "purge redis-server",
            "'redis-server' is not a PID; `hakmem ps` lists them, pgrep -o NAME tells one",
        ),
        ("top redis-server", "is not a PID"),
        ("why redis-server", "neither a PID nor a core file; `hakmem ps` lists processes"),
        ("why 1 2 3", "unexpected extra arguments (2 3); give one PID: pgrep -o NAME tells the oldest"),
        ("stat 1 2", "(2); give one PID"),
        ("run --profil -- true", "--profile"),
        *((line, "Usage:") for line in ("stat", "stat x", "top 0", "nosuch", "run", "run --env x true")),
    ],
)
def test_a_wrong_word_is_told_with_the_right_one(tool: Tool, line: str, word: str) -> None:
    ended = tool(*line.split())
    assert ended.status == ExitCode.USAGE
    assert word in ended.stderr
