"""`hakmem PID`, the first answer, and `hakmem stat`, of a process on glibc's malloc: what they say is true,
in any terminal, and the process is neither stopped nor changed."""

import os
import pty
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from anyprocess.conftest import PROGRAMS, Start
from results import Compile, Find, captured
from tool.conftest import Tool
from tool.forked import tool_environment
from tool.processes import PROGRAMS as TOOL_PROGRAMS
from tool.processes import TOOL, wait_until
from tool.terminals import Open, terminal

__all__ = ["terminal"]

# System calls that stop another process, or write into it.
HARMFUL = ("ptrace", "process_vm_writev", "kill", "tkill", "tgkill", "pidfd_send_signal")


def as_line(text: str) -> str:
    return " ".join(text.split())


# ---- the first answer -------------------------------------------------------------------------------


def test_a_healthy_program(shape: Start, tool: Tool) -> None:
    process = shape("plain")
    text = as_line(tool(process.pid).stdout)
    for words in (
        f"(PID {process.pid}): glibc 2.",
        "1 thread RSS",
        "live data",
        "No size of blocks grew in 3 s.",
        "Nothing is definitely lost",
        f"Next: hakmem what {process.pid}",
    ):
        assert words in text, text


def test_a_leak_is_told_with_its_content(start: Start, compile_c: Compile, tool: Tool) -> None:
    process = start([compile_c(TOOL_PROGRAMS / "lost_objects.cc")])
    text = as_line(tool(process.pid).stdout)
    assert re.search(
        r"Leak: nothing points to 2\d\d KiB in 1,4\d\d blocks, mostly C\+\+ object shop::", text
    ), text
    assert "Next: hakmem run -- " in text
    assert "then hakmem leaks" in text


def test_growth_is_told_with_its_size(start: Start, compile_c: Compile, tool: Tool) -> None:
    process = start([compile_c(PROGRAMS / "grows.c"), "500"])
    answer = tool.json(process.pid)
    (grown,) = answer["growth"]["sizes"]
    assert (grown["block_bytes"], grown["content"]) == (600, "text")
    assert grown["low"] <= 500 * answer["growth"]["seconds"] * 1.02
    assert grown["high"] >= 500 * answer["growth"]["seconds"] * 0.98
    assert answer["leaks"]["definite"]["blocks"] == 0
    assert answer["next"].startswith("hakmem run -- ")


def test_fragmentation_is_told(shape: Start, tool: Tool) -> None:
    text = as_line(tool(shape("fragmented").pid).stdout)
    assert "free chunks, pinned" in text
    assert "Fragmentation: 3" in text


@pytest.mark.parametrize("columns", [100, 40])
def test_in_a_terminal(shape: Start, terminal: Open, columns: int) -> None:
    process = shape("fragmented")
    shown = terminal(process.pid, columns=columns, rows=50)
    text = shown.wait_for("RSS", "free chunks, pinned", "Fragmentation", "Next: hakmem what", "status 0")
    assert max(map(len, text.splitlines())) <= columns
    shown = terminal("why", process.pid, columns=columns, rows=60)
    shown.wait_for("free chunks, pinned", "sum of the lines", "Verdict", "status 0")


@pytest.mark.parametrize(
    ("words", "shown", "taken", "given_back"),
    [("top", b"RSS", b"\x1b[?1049h", b"\x1b[?1049l"), ("", b"\x1b[?25l", b"\x1b[?25l", b"\x1b[?25h")],
)
def test_an_interrupt_gives_the_terminal_back(
    start: Start, words: str, shown: bytes, taken: bytes, given_back: bytes
) -> None:
    """The screen that was there before, and the cursor beside a bar."""
    process = start(["sh", "-c", "echo ready; read line"])
    outside, inside = pty.openpty()
    environment = tool_environment() | {"TERM": "xterm"}
    command, drawn = [*TOOL, *words.split(), str(process.pid)], b""
    with subprocess.Popen(command, env=environment, stdin=inside, stdout=inside, stderr=inside) as tool:
        os.close(inside)
        with suppress(OSError):  # EIO: the tool has ended
            while piece := os.read(outside, 1 << 16):
                is_new, drawn = shown not in drawn, drawn + piece
                if is_new and shown in drawn:
                    tool.send_signal(signal.SIGINT)
    os.close(outside)
    assert tool.returncode == -signal.SIGINT
    assert drawn.rfind(given_back) > drawn.rfind(taken) >= 0, drawn


# ---- stat -------------------------------------------------------------------------------------------


def test_stat_counts_what_lives(shape: Start, tool: Tool) -> None:
    process = shape("fragmented")
    heap = tool.json("stat", process.pid)["heap"]
    assert heap["libc"].startswith("2.")
    (arena,) = heap["arenas"]
    sizes = {size: (live, cached) for size, live, cached, _ in heap["sizes"]}
    assert sizes[112] == (50000, 7)
    assert arena["is_main"]
    parts = ("live_bytes", "free_bytes", "top_bytes", "tcache_bytes", "fastbin_bytes")
    assert sum(arena[name] for name in parts) == pytest.approx(arena["system_bytes"], abs=4096)
    assert heap["explained_share"] == 1


def test_stat_as_text(shape: Start, tool: Tool) -> None:
    process = shape("arenas")
    text, everything = (tool("stat", process.pid, *words).stdout for words in ([], ["--all"]))
    assert "13 arenas" in text
    assert "… and 1 more arena (--all)" in text
    assert "more arena" not in everything
    assert re.search(r"^main +1 ", everything, re.MULTILINE)
    assert "Blocks by size" in text


def test_stat_of_chunks_with_mappings_of_their_own(shape: Start, tool: Tool) -> None:
    process = shape("mmapped")
    heap = tool.json("stat", process.pid)["heap"]
    assert heap["mmapped_chunks"] == 24
    assert heap["mmapped_bytes"] == pytest.approx(process.parts["mmapped"], rel=0.01)
    assert "of these with mappings of their own" in tool("stat", process.pid).stdout


# ---- what must not happen to the process ------------------------------------------------------------


@pytest.mark.parametrize("words", ["", "why", "what", "stat", "leaks --for 200ms --wait 50ms"])
def test_it_is_neither_stopped_nor_written_to(
    shape: Start, program: Find, tmp_path: Path, words: str
) -> None:
    """By the tool's own system calls, and by the process's pages."""
    process, trace = shape("plain"), tmp_path / "trace"
    strace = [program("strace"), "-f", "-qq", "-o", trace, "-e", f"trace={','.join(HARMFUL)},openat,open"]
    name, *options = words.split() or [""]
    command = [*TOOL, *([name] if name else []), process.pid, *options]
    before = rss_and_faults(process.pid)
    step = captured([*strace, *command], env=tool_environment())
    if "PTRACE_TRACEME" in step.stderr or "ptrace(" in step.stderr:
        pytest.skip("strace does not work here")
    assert step.returncode == 0, step.stderr
    calls = trace.read_text().splitlines()
    assert [line for line in calls if "/mem" in line or f"/proc/{process.pid}" in line]
    signals = [line for line in calls if re.search(rf"\b({'|'.join(HARMFUL)})\(", line)]
    assert not [line for line in signals if str(process.pid) in line or "process_vm_writev" in line], signals
    opened = [line for line in calls if f"/proc/{process.pid}/" in line]
    assert not [line for line in opened if "O_RDWR" in line or "O_WRONLY" in line], opened
    assert rss_and_faults(process.pid) == before


def rss_and_faults(pid: int) -> tuple[str, ...]:
    """It sleeps: what changes has been done to it."""
    stat = Path(f"/proc/{pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "S", "it does not sleep")
    fields = stat.read_text().rpartition(")")[2].split()
    return fields[7], fields[9], fields[21]
