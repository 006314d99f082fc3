"""hakmem symbolize: the frames of reports get the names that debuggers give them."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from compiling import marked_lines
from hakmem.profile.live import read_profile
from hakmem.profile.names import Sources, name_addresses
from hakmem.target.elf import open_elf
from hakmem.target.target import open_process
from preload import clean_environment
from results import Compile, captured
from tool.conftest import PROGRAMS, Tool
from tool.processes import running

SOURCE = PROGRAMS / "frames.cc"
LINES = marked_lines(SOURCE)
WITH_DEBUG = [
    ["-O2", "-gdwarf-5"],
    ["-O2", "-gdwarf-4"],
    ["-O1", "-gdwarf-5", "-no-pie"],
    ["-O2", "-gdwarf-5", "-ffunction-sections"],
]


def build(compiler: str, folder: Path, *flags: str) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    program = folder / "server"
    words = [compiler, *flags, "-fno-builtin", "-fno-optimize-sibling-calls", str(SOURCE), "-o", str(program)]
    subprocess.run(words, check=True)
    return program


def report_of(tool: Tool, command: Sequence[str | Path], cwd: Path | None = None) -> str:
    options = {"LD_PRELOAD": str(tool.library), "HAKMEM_HARDEN": "1"}
    words = [str(word) for word in command]
    step = captured(words, env=clean_environment() | options, cwd=cwd)
    assert step.returncode == -6, step.stderr
    return step.stderr


def named(tool: Tool, report: str, *options: str | Path) -> str:
    """What the command makes of it, by standard input."""
    words = [str(tool.path), "symbolize", *map(str, options)]
    step = captured(words, input=report, timeout=60)
    assert (step.returncode, step.stderr) == (0, ""), step
    return step.stdout


def where(function: str) -> str:
    return f" at {SOURCE}:{LINES[function]}"


@pytest.mark.long("a second each; each compiler and its flags", keep=1)
@pytest.mark.parametrize("flags", WITH_DEBUG, ids=" ".join)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_functions_files_and_lines(tool: Tool, compiler: str, flags: list[str], tmp_path: Path) -> None:
    program = build(compiler, tmp_path, *flags)
    report = report_of(tool, [program])
    assert "handle_request" not in report, "the dynamic linker does not know it"
    lines = named(tool, report).splitlines()
    at = re.escape(f"({program}+")
    expected = [
        rf"hakmem:     #0 0x\w+ (server::)?release(\(\))?{re.escape(where('release'))} {at}0x\w+\)",
        rf"hakmem:        inlined into server::Connection::close\(int\){re.escape(where('close'))}",
        rf"hakmem:     #1 0x\w+ handle_request\(.*\){re.escape(where('handle_request'))} {at}0x\w+\)",
        rf"hakmem:     #2 0x\w+ main{re.escape(where('main'))} {at}0x\w+\)",
    ]
    assert lines[0] == report.splitlines()[0]
    for line, pattern in zip(lines[2:], expected, strict=False):
        assert re.fullmatch(pattern, line), "\n".join(lines)


@pytest.mark.long("a second of processor time")
def test_the_same_as_addr2line(tool: Tool, tmp_path: Path) -> None:
    if shutil.which("addr2line") is None:
        pytest.skip("addr2line is not installed (binutils)")
    program = build("g++", tmp_path, "-O2", "-g")
    report = report_of(tool, [program])
    offsets = [int(at, 16) - 1 for at in re.findall(rf"{program}\+(0x\w+)", report)]
    words = ["addr2line", "-i", "-f", "-C", "-e", program, *map(hex, offsets)]
    step = captured(words, check=True)
    theirs = re.findall(r"^(/\S+:\d+)", step.stdout, re.MULTILINE)
    ours = re.findall(r" at (/\S+frames.cc:\d+)", named(tool, report))
    assert ours
    assert ours == [place for place in theirs if "frames.cc" in place]


@pytest.mark.long("2 seconds of processor time")
def test_without_debug_information_functions_are_named(tool: Tool, tmp_path: Path) -> None:
    program = build("g++", tmp_path, "-O1")
    shown = named(tool, report_of(tool, [program]))
    assert re.search(r"#1 0x\w+ handle_request\(\w+.*\) \(", shown), shown
    assert re.search(r"#2 0x\w+ main \(", shown)
    subprocess.run(["strip", program], check=True)
    report = report_of(tool, [program])
    ours = [line for line in report.splitlines() if str(program) in line]
    assert set(ours) <= set(named(tool, report).splitlines()), "nothing is known: as it was"


def separate_by_link(program: Path, debug: Path) -> None:
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", "-g", "-s", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)


def test_debug_information_in_a_file_of_its_own(tool: Tool, tmp_path: Path) -> None:
    program = build("g++", tmp_path, "-O2", "-g")
    (tmp_path / ".debug").mkdir()
    separate_by_link(program, tmp_path / ".debug" / "server.debug")
    shown = named(tool, report_of(tool, [program]))
    assert f" main{where('main')} (" in shown


def test_debug_information_by_build_id(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = build("g++", tmp_path, "-O2", "-g", "-Wl,--build-id=0x1234567890abcdef")
    debug = tmp_path / "debug" / ".build-id" / "12" / "34567890abcdef.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", "-s", program], check=True)
    monkeypatch.setattr("hakmem.profile.debug_files.DEBUG_ROOT", tmp_path / "debug")
    text = tmp_path / "report"
    text.write_text(report_of(tool, [program]))
    assert f" main{where('main')} (" in tool("symbolize", text).stdout


@pytest.mark.long("2 seconds of processor time")
def test_names_without_a_folder_and_moved_files(tool: Tool, tmp_path: Path) -> None:
    program = build("g++", tmp_path, "-O2", "-g")
    report = report_of(tool, ["./server"], cwd=tmp_path)
    assert " ./server+0x" in report
    there = tmp_path / "there"
    there.mkdir()
    program.rename(there / "server")
    for options in (["--files", there / "server"], ["--files", there]):
        assert f" main{where('main')} (" in named(tool, report, *options)
    words = [str(tool.path), "symbolize"]
    step = captured(words, input=report, cwd=tmp_path)
    assert step.stderr == "hakmem: warning: ./server: not found; its frames stay unresolved\n"
    assert "#2 0x" in step.stdout


@pytest.mark.long("2 seconds of processor time")
def test_the_instruction_of_a_fault_is_no_return_address(tool: Tool, tmp_path: Path) -> None:
    program = build("g++", tmp_path, "-O2", "-g")
    nm = captured(["nm", program], check=True).stdout
    main = next(line.split()[0] for line in nm.splitlines() if line.endswith(" T main"))
    for what, is_main in (("read", True), ("allocated", False)):
        stack = f"hakmem:   {what} by thread 7:\nhakmem:     #0 0x55 {program}+0x{main}\n"
        assert (" main at " in named(tool, stack)) == is_main


def test_all_else_passes_as_it_is(tool: Tool, tmp_path: Path) -> None:
    text = tmp_path / "text"
    parts = [
        b"hakmem: double free of 0x1: \xff\xfe\r\n", b"\0\n", b"hakmem:     #0\n",
        b"hakmem:     #0 0x12 +0x3\n", b"hakmem:     #0 0xzz /bin/sh+0x3\n", b"no end",
    ]  # fmt: skip
    text.write_bytes(b"".join(parts))
    step = subprocess.run([tool.path, "symbolize", text], capture_output=True, check=False)
    assert (step.returncode, step.stdout, step.stderr) == (0, text.read_bytes(), b"")
    assert tool("symbolize").stdout == ""
    assert tool("symbolize", tmp_path / "nosuch").status == 2


@pytest.mark.long("3 seconds of damaged files")
def test_damaged_files(tool: Tool, tmp_path: Path) -> None:
    """Cut at any place: named or left alone, and told of at most once."""
    whole = build("g++", tmp_path, "-O2", "-g").read_bytes()
    frames = "".join(
        f"hakmem:     #{number} 0x1 {tmp_path}/cut+{number * 64 + 4096:#x}\n" for number in range(9)
    )
    text = tmp_path / "report"
    text.write_text(frames)
    for length in [*range(0, 4096, 97), *range(4096, len(whole), len(whole) // 97)]:
        (tmp_path / "cut").write_bytes(whole[:length])
        ended = tool("symbolize", text)
        assert ended.status == 0
        assert len(ended.stdout.splitlines()) >= 9
        assert len(ended.stderr.splitlines()) <= 1
    damaged = bytearray(whole)
    for at in range(64, len(damaged), 61):
        damaged[at] ^= 0x5A
    (tmp_path / "cut").write_bytes(damaged)
    assert tool("symbolize", text).status == 0


@pytest.mark.long("a second of processor time")
def test_a_closed_pipe_ends_it_quietly(tool: Tool, tmp_path: Path) -> None:
    text = tmp_path / "report"
    text.write_text("hakmem:     #0 0x1 /bin/sh+0x9000\n" * 100000)
    words = f"{tool.path} symbolize {text} | head -1; {tool.path} symbolize {text} >&-; exit 0"
    step = captured(["sh", "-c", words], timeout=60)
    assert "Traceback" not in step.stderr
    assert "Error" not in step.stderr
    assert len(step.stdout.splitlines()) == 1


def test_lines_come_as_they_are_written(tool: Tool) -> None:
    """A program that runs on: what it has said so far is there."""
    process = subprocess.Popen([tool.path, "symbolize"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"hakmem: first\n")
    process.stdin.flush()
    assert os.read(process.stdout.fileno(), 100) == b"hakmem: first\n"
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    process.stdout.close()


# ---- programs that are run again and again are one file, whose paths (/proc/PID/root) come and go --------


def test_a_file_has_the_path_that_is_there(compile_c: Compile, tmp_path: Path) -> None:
    program, old, new = compile_c(PROGRAMS / "asked.c"), tmp_path / "old", tmp_path / "new"
    for name in (old, new):
        name.hardlink_to(program)
    first = open_elf(old)
    old.unlink()
    second = open_elf(new)
    assert second is first
    assert second is not None
    assert second.name == str(new)


def test_lines_of_a_second_process(lib: Path, compile_c: Compile) -> None:
    """After the first has ended."""
    for _ in range(2):
        with running([compile_c(PROGRAMS / "asked.c")], lib, {"HAKMEM_PROFILE": "64"}) as process:
            target = open_process(process.pid)
            assert target.process is not None
            profile = read_profile(target, with_counts=False)
            name_addresses(profile, Sources.of_process(target.process))
        frames = [frame for at in profile.names.values() for frame in at if frame.function.startswith("ask_")]
        assert frames
        assert all(frame.file.endswith("asked.c") and frame.line for frame in frames), frames
