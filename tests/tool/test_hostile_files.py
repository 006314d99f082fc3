"""Files that somebody made to hurt: names that take long, archives that grow, text that a terminal obeys."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hakmem.base.errors import ExitCode, HakmemError
from hakmem.blocks.guards import GuardReport, GuardStack
from hakmem.profile import pprof_reader
from hakmem.profile.files import loaded
from hakmem.profile.model import Frame, Header, Profile
from hakmem.profile.short_names import short_name
from hakmem.profile.wrappers import is_internal, is_wrapper
from hakmem.trace.file import COLUMNS, Writer
from hakmem.views.guard_text import guard_lines
from hakmem.views.profile_text import heading
from tool.conftest import Tool

LENGTH = 1 << 20
# Each makes a pattern try again from every place where it could begin, and fail at the end.
PIECES = [
    "{lambda(",
    "hashbrown::raw::RawTable::with_capacity::",
    "call<>",
    "call<{",
    "::_M_invoke<",
    "std::allocator<int>::_",
    "std::sys::alloc",
    "operator<",
    "operator ",
    "<&mut ",
    "<<u8 as core::",
    "<[",
    "(anonymous namespace)::",
    "_PyMem_Raw",
    "x ",
]


@pytest.mark.long("a second each; each piece of a name, repeated", keep=1)
@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("end", ["", "\n", "x\0"])
def test_no_name_takes_long(piece: str, end: str) -> None:
    for begin in ("", "<", "hashbrown::raw::", "std::allocator<"):
        name = begin + piece * (LENGTH // len(piece)) + end
        assert not (is_wrapper(name) and not is_internal(name))
        assert len(short_name(name)) <= 80


@pytest.mark.parametrize("argument", ["int, ", "std::pair<A, B>, "])
def test_long_names_of_libraries_are_known(argument: str) -> None:
    """Templates make names of tens of thousands of characters."""
    types = argument * 3000
    assert is_internal(f"void std::vector<{types}int>::_M_realloc_insert<int>(int&&)")
    assert is_wrapper(f"std::allocator<{types}int>::allocate(unsigned long)")
    assert not is_internal(f"shop::Basket<{types}int>::add(int)")


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_half_a_file_is_told(share: float) -> None:
    data = gzip.compress(b'{"format": "hakmem-profile", "stacks": [' + b'["0x1234"], ' * 9999)
    with pytest.raises(HakmemError, match="is damaged"):
        loaded(data[: int(len(data) * share)], "x.json")


def test_a_file_that_grows_without_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pprof_reader, "BYTES_MAX", 1 << 20)
    with pytest.raises(HakmemError, match="is damaged: it is larger"):
        loaded(gzip.compress(b'{"format": "' + bytes(2 << 20)), "x.json")


def test_a_report_is_only_shown() -> None:
    evil = "read\x1b]0;title\x07\r\n\x9b2J"
    frame = Frame(f"main{evil}", f"/tmp/{evil}.c", 3)
    lines = guard_lines(GuardReport(evil, evil, 0x10, 0x10, 5, False, [GuardStack(evil, 1, [frame])]))
    assert all(line.isprintable() for line in lines)


def test_a_program_has_any_name() -> None:
    """A file says how its program was called."""
    (line,) = list(heading(Profile(Header(process_name="\x1b]0;mine\x07\nserver"))))[:1]
    assert line.startswith("]0;mine server (")


def test_a_trace_is_of_any_process(tool: Tool, tmp_path: Path) -> None:
    """Its head is shown, and styles nothing."""
    path = tmp_path / "x.hkt"
    writer = Writer(path, {"pid": "[/x]\x1b[2J", "began": "[red]\n1", "command": ["[/]"]})
    writer.table("events", {name: np.zeros(1, dtype) for name, dtype in COLUMNS.items()})
    writer.close()
    ended = tool("trace", path)
    assert ended.status == 0, ended.stderr
    assert ended.stdout.splitlines()[0] == "Trace of process [/x] [2J ([/]), [red] 1"


# ---- what another command has written: the message names the one that reads it ---------------------------


def test_a_recording_is_no_profile(tool: Tool, run: Path) -> None:
    ended = tool("profile", run)
    assert ended.status == ExitCode.FAILED
    assert f"{run} is a recording, not a heap profile; hakmem record {run} makes its page" in ended.stderr


@pytest.mark.parametrize("command", ["stat", "why"])
@pytest.mark.parametrize("kind", ["recording", "profile"])
def test_neither_is_a_core(tool: Tool, run: Path, tmp_path: Path, command: str, kind: str) -> None:
    file = run if kind == "recording" else tmp_path / "x.pb.gz"
    if kind == "profile":
        file.write_bytes(gzip.compress(b"profile"))
    ended = tool(command, file)
    assert ended.status == ExitCode.FAILED
    assert "is not a core dump" in ended.stderr
    assert "hakmem profile shows a heap profile, hakmem record a recording" in ended.stderr
