"""Narrow terminals lose no data; a thing is one, others are many; names that do not exist are not named."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hakmem.base.errors import HakmemError
from hakmem.base.sizes import counted
from hakmem.commands.arguments import warn
from hakmem.entry import told
from hakmem.target import access
from hakmem.target.process import Process
from hakmem.views.recording import Recording
from hakmem.views.screen import Sheet, console, one_line
from results import Compile
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from tool.forked import forked
from tool.processes import PROGRAMS, hakmem, running, wait_until

WIDE = 400
WORKED_S = 0.3
WHOLE_FROM_COLUMNS = 33
NARROW = (20, 25, 33, 45, 60, 80)


@pytest.fixture(scope="module")
def still(lib: Path, compile_c: Compile) -> Iterator[subprocess.Popen[str]]:
    """One that has worked, and is stopped."""
    with running([compile_c(PROGRAMS / "busy.c"), "3600"], lib) as process:
        shown = Process(process.pid)
        wait_until(lambda: shown.figures().cpu_s > WORKED_S, "it does not work")
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: shown.state == "T", "it does not stop")
        yield process


def said(arguments: list[object], columns: int) -> str:
    ending = forked([str(word) for word in arguments], environment={"COLUMNS": str(columns)})
    assert ending.status in (0, 1), ending
    assert "…" not in re.sub(r"…\s+and", "", ending.stdout)
    return ending.stdout


def tokens(text: str) -> set[str]:
    """Figures and names, wherever lines were broken."""
    return set(re.findall(r"[0-9][0-9.,]*(?: (?:[KMGT]iB|B|k|M|%)\b)?|[a-z]+_[a-z_]+", text))


def without_breaks(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.long("the tool is started twice for each", keep=1)
@pytest.mark.parametrize("columns", NARROW)
@pytest.mark.parametrize("command", ["stat", "stat --all", "why", "why --all"])
def test_every_figure_is_there(still: subprocess.Popen[str], command: str, columns: int) -> None:
    name, *options = command.split()
    wide = said([name, still.pid, *options], WIDE)
    narrow = said([name, still.pid, *options], columns)
    assert max(cell_len(line.rstrip()) for line in narrow.splitlines()) <= columns
    squeezed = without_breaks(narrow)
    if columns >= WHOLE_FROM_COLUMNS:
        assert [token for token in tokens(wide) if without_breaks(token) not in squeezed] == []
    lost = Counter(re.sub("[^0-9]", "", wide)) - Counter(re.sub("[^0-9]", "", narrow))
    assert not lost, "where a figure does not fit beside another, its digits are broken, but all there"


@pytest.mark.long("2 seconds each; each width")
@pytest.mark.parametrize("columns", NARROW)
def test_processes_and_findings(still: subprocess.Popen[str], columns: int) -> None:
    listed = said(["ps", "--all"], columns)
    assert re.search(rf"^ *{still.pid}\b", listed, re.MULTILINE), "PIDs are whole, each in a line of its own"
    assert max(cell_len(line.rstrip()) for line in listed.splitlines()) <= columns
    assert max(cell_len(line.rstrip()) for line in said(["doctor"], columns).splitlines()) <= columns
    once = said(["top", str(still.pid), "--every", "100ms"], columns)
    for word in "RSS remote frees page faults given back refills".split():
        assert word in without_breaks(once)


def rendered(columns: int, *words: str, key: int = 0) -> str:
    console = Console(width=columns, force_terminal=False)
    with console.capture() as capture:
        console.print(Sheet("Title", ["n", "<name", "value", "<text"], [words], key))
    return capture.get()


@pytest.mark.parametrize("columns", range(20, 90))
def test_any_width(columns: int) -> None:
    words = ("1234567", "a_long_name_of_it", "12.34 MiB", "words that may be broken anywhere they end")
    text = rendered(columns, *words, key=1)
    assert max(map(len, text.splitlines())) <= columns
    squeezed = without_breaks(text)
    for word in words[:3]:
        assert word.replace(" ", "") in squeezed
    assert all(word in squeezed for word in words[3].split())


def test_a_part_begins_with_its_key() -> None:
    text = rendered(30, "1234567", "a_long_name_of_it", "12.34 MiB", "text", key=1)
    lines = [line for line in text.splitlines() if "a_long_name_of_it" in line]
    assert len(lines) >= 2
    assert any("1234567" in line for line in lines)


@pytest.mark.parametrize("columns", ["", "0", "-5", "x", "1", "99999999999999999999", "²", " 60"])
def test_columns_that_are_none(columns: str) -> None:
    ending = forked(["doctor"], environment={"COLUMNS": columns})
    assert ending.status in (0, 1)
    assert "libhakmem" in ending.stdout or "hakmem" in ending.stdout


def test_commands_are_one_line_and_harmless() -> None:
    """What steers a terminal is not for other people's programs to print."""
    assert one_line(["a\x1b[31mred", "b\nc", "\x07\x9b2J", "d\u202ee"]) == "a [31mred b c 2J d e"
    assert one_line(["0123456789"], 10) == "0123456789"
    assert one_line(["0123456789x"], 10) == "012345678…"
    assert cell_len(one_line(["漢字漢字漢字"], 8)) <= 8


def test_a_long_path_leaves_the_programs_name() -> None:
    program = f"/home/{'a_folder/' * 20}server"
    assert one_line([program, "--port", "1"], 60) == "server --port 1"
    assert one_line([program, "--port", "1"], 10) == "server --…"
    assert one_line([program]) == program, "where there is room, the path is there"


def test_a_commands_escapes_do_not_reach_the_terminal(lib: Path) -> None:
    """In its command line, its name, its threads' names or its environment; nor do they make lines."""
    evil, variables = "\x1b]0;evil\x07\x1b[2J\x9b2J", {"HAKMEM_EVIL": "\x1b[2J", "LD_LIBRARY_PATH": "\x1b[2J"}
    script = f"printf '{evil}' > /proc/$$/comm; echo ready; sleep 60; true"
    argv = [f"{evil}\nsh", "-c", script, evil]
    program = [sys.executable, "-c", f"import os; os.execv('/bin/sh', {argv!r})"]
    with running(program, lib, variables) as process:
        for command in (["ps", "--all"], *([name, process.pid] for name in ("stat", "why", "doctor"))):
            text = forked(command).stdout
            assert not set(text) & {"\x1b", "\x07", "\x9b"}, command
            assert str(process.pid) in text or command[0] == "doctor"
        answer = forked([process.pid]).stdout
        assert not set(answer) & {"\x1b", "\x9b"}
        assert f"sh (PID {process.pid})" in answer.splitlines()[0]
        other = forked(["leaks", process.pid, "--for", "1ms", "--wait", "1ms"])
        assert not set(other.stdout + other.stderr) & {"\x1b", "\x9b"}


def test_errors_and_tables_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "a\x1b[2J\x9b2J\x7f"
    warn(evil)
    told(HakmemError(evil))
    console().print(Sheet(evil, [evil], [[evil], [Text(evil)]]))
    shown = capsys.readouterr()
    assert shown.err == "hakmem: warning: a[2J2J\nhakmem: a[2J2J\n"
    assert shown.out.split() == ["a[2J2J"] * 4


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 threads"), (1, "1 thread"), (2, "2 threads"), (1234, "1,234 threads")]
)
def test_one_and_many(count: int, text: str) -> None:
    assert counted(count, "thread") == text


def test_one_thread_one_sample_one_slab(lib: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with running(["sh", "-c", "echo ready; sleep 60; true"], lib) as process:
        texts = [
            hakmem("record", process.pid, "--for", "10ms", "--every", "1s", "-o", path).stdout,
            hakmem("record", path, status=1).stderr,
            said(["stat", process.pid], 100),
            said(["why", process.pid, "--all"], 100),
            said(["doctor"], 100),
        ]
    assert len(Recording.read(path).samples) == 1
    assert "1 sample " in texts[0]
    assert "has 1 sample," in texts[1]
    assert "; 1 thread;" in texts[2]
    for text in texts:
        assert not re.search(r"(?<![\d.,])1 (samples|threads|slabs|problems|heaps|calls|requests)\b", text)


def test_yama_is_named_only_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from hakmem.doctor.checks import check_access

    monkeypatch.setattr(access, "PTRACE_SCOPE", tmp_path / "none")
    texts = [str(access.refused(os.getpid())), check_access().found]
    assert not [text for text in texts if "ama" in text or "ptrace_scope" in text]
    (tmp_path / "none").write_text("0\n")
    assert "ptrace_scope is 0" in check_access().found
