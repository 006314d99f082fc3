"""Processes that cannot be read, and those that only seem so: one sentence each, and the exit
status that is documented."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from anyprocess.conftest import PROGRAMS, Start
from hakmem.base.errors import ExitCode
from results import Compile, captured
from tool.conftest import Tool
from tool.forked import Ending
from tool.processes import PROGRAMS as TOOL_PROGRAMS
from tool.processes import wait_until
from tool.test_refusals import AS_NOBODY, PID_MAX, ends_with

from walk.images import program_of_32_bits

# "" is `hakmem PID` itself.
COMMANDS = ("", "why", "what", "stat", "leaks --for 0s --freeze", "leaks --for 100ms --wait 50ms")
# Commands, and the names of the files that they would write.
NEED_HAKMEM = {"profile --for 100ms": "x.json", "trace --for 100ms": "x.hkt", "purge": "", "record": "x.json"}


def words_of(command: str, pid: int | str) -> list[str]:
    name, *words = command.split() or [""]
    return [*([name] if name else []), str(pid), *words]


of_each_command = pytest.mark.parametrize("command", COMMANDS)

# ---- another malloc, or none ------------------------------------------------------------------------


@pytest.fixture
def bare(compile_c: Compile) -> Callable[..., Path]:
    return lambda *flags: compile_c(PROGRAMS / "bare.c", "-nostdlib", "-static", *flags)


@of_each_command
def test_a_program_without_a_heap(bare: Callable[..., Path], start: Start, tool: Tool, command: str) -> None:
    ended = tool(*words_of(command, running(start, bare())))
    ends_with(
        ended, ExitCode.FAILED, "bare", "does not run on hakmem, nor on glibc's malloc, but on a malloc"
    )


def running(start: Start, program: str | Path, *words: str) -> int:
    """Its PID, as soon as it is that program and waits."""
    process = start([program, *words], ready=None)
    place = Path(f"/proc/{process.pid}")
    is_it = lambda: (place / "exe").resolve() == Path(program).resolve()  # noqa: E731
    wait_until(
        lambda: is_it() and (place / "stat").read_text().split()[2] == "S", f"{program} does not begin"
    )
    return process.pid


@of_each_command
def test_a_32_bit_program(start: Start, tool: Tool, command: str, tmp_path: Path) -> None:
    try:
        pid = running(start, program_of_32_bits(tmp_path / "of-32-bits"))
    except OSError:
        pytest.skip("this kernel runs no 32-bit programs")
    ends_with(tool(*words_of(command, pid)), ExitCode.FAILED, "is a 32-bit program; only 64-bit ones")


@pytest.mark.parametrize("flags", [(), ("-static",)], ids=["dynamic", "static"])
def test_musl(start: Start, tool: Tool, tmp_path: Path, flags: tuple[str, ...]) -> None:
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is missing")
    program = tmp_path / "on-musl"
    subprocess.run(["musl-gcc", PROGRAMS / "waits.c", "-o", program, *flags], check=True)
    process = start([program])
    for command in COMMANDS:
        ended = tool(*words_of(command, process.pid))
        ends_with(ended, ExitCode.FAILED, "on-musl", "nor on glibc's malloc, but on ")
        has_advice = "musl; start it with: hakmem run -- on-musl" in ended.stderr
        assert has_advice == (not flags), ended.stderr


GO = """
package main

import "os"

var kept [][]byte

func main() {
    for i := 0; i < 1000; i++ { kept = append(kept, make([]byte, 1000)) }
    os.Stdout.WriteString("ready\\n")
    os.Stdin.Read(kept[0])
}
"""


@pytest.mark.long("a second, to build a program of Go")
def test_go(start: Start, tool: Tool, tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("go is missing")
    (tmp_path / "x.go").write_text(GO)
    program = tmp_path / "in-go"
    built = captured(["go", "build", "-o", program, tmp_path / "x.go"])
    if built.returncode:
        pytest.skip(f"go builds nothing here: {built.stderr[-200:]}")
    process = start([program])
    for command in COMMANDS:
        ended = tool(*words_of(command, process.pid))
        ends_with(ended, ExitCode.FAILED, "in-go", "nor on glibc's malloc, but on Go")
        assert "hakmem run" not in ended.stderr, "nothing can be preloaded into it"


def test_another_allocator(start: Start, tool: Tool) -> None:
    """Of a library that is loaded, by its name."""
    libraries = [*Path("/usr/lib").glob("**/libjemalloc.so.2"), *Path("/usr/lib").glob("**/libmimalloc.so.*")]
    if not libraries:
        pytest.skip("no other malloc is installed")
    process = start(["sh", "-c", "echo ready; read line"], LD_PRELOAD=str(libraries[0]))
    name = libraries[0].name.partition(".")[0].removeprefix("lib")
    ended = tool("why", process.pid)
    ends_with(ended, ExitCode.FAILED, f"but on {name}; start it with: hakmem run -- sh")


# ---- glibc's malloc without libc.so -----------------------------------------------------------------


@pytest.mark.parametrize("flags", [("-static",), ("-static", "-s"), ("-static-pie",)], ids=" ".join)
def test_static_programs_can_be_read(
    start: Start, compile_c: Compile, tool: Tool, flags: tuple[str, ...]
) -> None:
    process = start([compile_c(PROGRAMS / "waits.c", *flags)])
    answer = tool.json("why", process.pid)
    assert answer["malloc"] == "glibc"
    (live,) = (line for line in answer["lines"] if line["name"] == "live data")
    assert live["bytes"] == pytest.approx(1_000_000, rel=0.05)
    assert sum(line["bytes"] for line in answer["lines"]) == pytest.approx(answer["rss_bytes"], rel=0.01)
    found = tool.json("leaks", process.pid, "--for", "0s", "--freeze")
    assert found["definite"]["blocks"] == 0
    assert tool.json("what", process.pid)["live_blocks"] >= 1000


def test_a_process_whose_main_thread_has_ended(start: Start, compile_c: Compile, tool: Tool) -> None:
    """Its memory is known under another thread's number."""
    process = start([compile_c(TOOL_PROGRAMS / "main_ends.c")])
    stat = Path(f"/proc/{process.pid}/stat")
    wait_until(lambda: stat.read_text().split()[2] == "Z", "its main thread does not end")
    for command in COMMANDS:
        ended = tool(*words_of(command, process.pid))
        assert ended.status == 0, (command, ended.stderr)


# ---- no right, or gone ------------------------------------------------------------------------------


@of_each_command
def test_no_such_process(tool: Tool, command: str) -> None:
    ends_with(tool(*words_of(command, PID_MAX + 1)), ExitCode.GONE, f"no such process: {PID_MAX + 1}")


@of_each_command
def test_a_zombie(start: Start, tool: Tool, command: str) -> None:
    process = start(["true"], ready=None)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    ends_with(tool(*words_of(command, process.pid)), ExitCode.GONE, "ended")


@of_each_command
def test_a_kernel_thread(tool: Tool, command: str) -> None:
    kthreadd = 2
    if not Path(f"/proc/{kthreadd}").exists() or Path(f"/proc/{kthreadd}/cmdline").read_text():
        pytest.skip("this container sees no kernel threads")
    ends_with(tool(*words_of(command, kthreadd)), ExitCode.FAILED, "kernel thread")


@pytest.mark.parametrize("command", ["", "why"])
def test_a_process_of_another_user(start: Start, tool: Tool, command: str) -> None:
    if os.geteuid() != 0:
        ends_with(tool(*words_of(command, 1)), ExitCode.REFUSED, "belongs to root", "sudo")
        return
    process = start(["sh", "-c", "echo ready; read line"])
    imports = "import hakmem.commands.answer, hakmem.commands.why\n"
    step = captured([sys.executable, "-c", imports + AS_NOBODY, *words_of(command, process.pid)])
    ended = Ending(step.returncode, step.stdout, step.stderr)
    ends_with(ended, ExitCode.REFUSED, "belongs to root, you are nobody", "CAP_SYS_PTRACE", "sudo")


@pytest.mark.long("5 seconds each, in which processes end at any moment", keep=1)
@of_each_command
def test_a_process_that_ends_in_the_middle(shape: Start, tool: Tool, command: str) -> None:
    chance = random.Random(command)
    for _ in range(6):
        process = shape("fragmented")
        killer = threading.Timer(chance.random() * 0.5, process.send_signal, (signal.SIGKILL,))
        killer.start()
        ended = tool(*words_of(command, process.pid))
        killer.join()
        assert ended.status in (0, ExitCode.GONE), ended
        assert ended.status == 0 or len(ended.stderr.splitlines()) == 1, ended.stderr


# ---- names ------------------------------------------------------------------------------------------


@pytest.fixture
def named(compile_c: Compile, tmp_path: Path) -> Path:
    """A program whose name no other process has."""
    return Path(
        shutil.copy(
            compile_c(PROGRAMS / "waits.c"), tmp_path / f"named-{os.getpid()}-{time.time_ns() % 1000}"
        )
    )


def test_a_name_is_as_good_as_a_pid(named: Path, start: Start, tool: Tool) -> None:
    process = start([named])
    by_name, by_pid = tool(named.name), tool(process.pid)
    assert by_name.status == by_pid.status == 0
    for text in (by_name.stdout, by_pid.stdout):
        assert f"(PID {process.pid}): glibc 2." in text


def test_several_processes_of_one_name(named: Path, start: Start, tool: Tool) -> None:
    pids = sorted(start([named]).pid for _ in range(2))
    ended = tool(named.name)
    assert ended.status == ExitCode.USAGE
    assert ended.stdout == ""
    assert f"2 processes are named {named.name}: {pids[0]}, {pids[1]}" in ended.stderr


def test_no_process_of_that_name(tool: Tool) -> None:
    ended = tool("no-such-name")
    assert ended.status == ExitCode.USAGE
    assert "No such command 'no-such-name', and no process has that name; hakmem --help" in ended.stderr


# ---- what needs hakmem ------------------------------------------------------------------------------


@pytest.mark.parametrize("command", NEED_HAKMEM)
def test_commands_that_need_hakmem_say_so(start: Start, tool: Tool, command: str, tmp_path: Path) -> None:
    process = start(["sh", "-c", "echo ready; read line"])
    name = NEED_HAKMEM[command]
    ended = tool(*words_of(command, process.pid), *(["-o", tmp_path / name] if name else []))
    ends_with(ended, ExitCode.FAILED, f"process {process.pid}", "glibc 2.", "hakmem run -- sh …")
    assert not list(tmp_path.iterdir())
