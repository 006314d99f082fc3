"""All commands, with any arguments, environment and descriptors, interrupted at any moment: a line that says
what is wrong, an exit status of the README, never a traceback, never a hang.

How long, and which cases: fuzz_world.py."""

import json
import os
import re
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from hakmem.cli import COMMANDS, main
from results import Compile, Tally
from tool.conftest import Tool
from tool.forked import NEVER, Ending, forked, is_clean, tool_environment
from tool.fuzz_world import SECONDS, World, counted, made, process, world
from tool.processes import PROGRAMS, running

PID_MAX = int(Path("/proc/sys/kernel/pid_max").read_text())
__all__ = ["made", "process", "world"]  # fixtures

pytestmark = pytest.mark.timeout(SECONDS * 4 + 200)


# Options that make a command go on until it is told to end.
ENDLESS = {"--every", "--wait"}
VARIABLES = {
    "COLUMNS": ("", "0", "-1", "1", "5", "19", "60", "x", "²", "9" * 30),
    "LINES": ("", "0", "²", "9" * 30),
    "TERM": ("", "dumb", "xterm-256color", "nosuch"),
    "LC_ALL": ("", "C", "POSIX", "C.UTF-8", "nosuch", "en_US.ISO-8859-1"),
    "LANG": ("", "C", "xx_YY.ZZ"),
    "HOME": ("", "/nonexistent", "relative"),
    "TMPDIR": ("", "/nonexistent", "/proc"),
    "PATH": ("", "/nonexistent", ":", "."),
    "TZ": ("", "nosuch", ":/dev/null", "A" * 500),
    "HAKMEM_LIBRARY": ("", "/nonexistent", "text", "dir", "empty"),
    "HAKMEM_STATS": ("1", "json", "nonsense"),
    "LD_PRELOAD": ("", "/nonexistent", "text"),
    "NO_COLOR": ("", "1"),
    "FORCE_COLOR": ("", "1"),
    "TTY_COMPATIBLE": ("1", "x"),
    "COLORTERM": ("truecolor", "x"),
    "PAGER": ("false",),
}


def options_of(name: str) -> list[click.Option]:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return [item for item in command.params if isinstance(item, click.Option)]


# Options whose value is a file that is written: only names in the test's own folder.
WRITING = {"--output", "--json"}
HARMLESS = ("true", "./text", "./script", "./closed", "dir", "empty", "")


def any_arguments(world: World) -> list[str]:
    """A command with some of its options, then words of all kinds.  An option is always followed by its own
    value, so that no word of the world is written to; and `run` gets harmless programs only."""
    name = world.one_of(*COMMANDS)
    words: list[str] = []
    known = [option for option in options_of(name) if not ENDLESS & set(option.opts)]
    for option in world.chance.sample(known, world.chance.randint(0, min(3, len(known)))):
        words.append(world.one_of(*option.opts))
        if option.is_flag:
            continue
        is_written = WRITING & set(option.opts)
        words.append(world.one_of("out", "dir", "loop", "none/x") if is_written else world.word())
    if name in ("run", "doctor"):
        return [name, *words, "--", world.one_of(*HARMLESS), world.word()]
    if name == "record":
        words += ["--for", "20ms", "--every", "10ms"]
        words += [] if {"-o", "--output"} & set(words) else ["-o", "page"]
    if name == "leaks":
        words += ["--for", "20ms"]
    if name == "top":
        words += ["--every", "100ms"]
    if name == "export":
        words += ["out"]
    return [name, *words, *(world.word() for _ in range(world.chance.randint(0, 2)))]


def nonsense(world: World) -> list[str]:
    """No command at all."""
    first = world.word()
    return [first, world.word()] if first not in COMMANDS else []


@pytest.mark.long("2 seconds; arguments at random")
def test_arguments(world: World, tally: Tally) -> None:
    for _ in counted(tally):
        arguments = any_arguments(world) if world.chance.random() < 0.97 else nonsense(world)
        ending = forked(arguments, cwd=world.folder)
        is_clean(ending, arguments)


def quick_commands(world: World) -> list[list[str]]:
    """One of each command that works."""
    core = [[name, str(world.core)] for name in ("stat", "why", "what", "leaks")] if world.core else []
    return [
        ["--help"],
        ["--version"],
        ["ps", "--json"],
        ["stat", str(world.busy)],
        ["stat", str(world.busy), "--json"],
        ["why", str(world.busy)],
        ["what", str(world.busy)],
        ["leaks", str(world.busy), "--for", "50ms", "--freeze"],
        ["top", str(world.busy), "--every", "100ms"],
        ["record", str(world.busy), "--for", "10ms", "-o", world.one_of("out", "-")],
        ["record", str(world.recording), "-o", world.one_of("page", "-")],
        ["export", world.one_of("metrics", "-"), "--detail", "counters"],
        ["doctor", "--json"],
        ["doctor", "--", "true"],
        ["--completion", "bash"],
        ["stat", str(PID_MAX + 1)],
        ["run", "--", "true"],
        *core,
    ]


@pytest.mark.long("a second; variables at random")
def test_environment(world: World, tally: Tally) -> None:
    for _ in counted(tally):
        names = world.chance.sample(list(VARIABLES), world.chance.randint(1, 5))
        environment = {name: world.one_of(*VARIABLES[name]) for name in names}
        arguments = world.chance.choice(quick_commands(world))
        ending = forked(arguments, environment=tool_environment(environment), cwd=world.folder)
        is_clean(ending, (arguments, environment))
        if environment.get("LC_ALL") in ("C", "POSIX"):
            assert ending.stdout.isascii() or arguments[0] in ("record", "export"), arguments


@pytest.mark.long("3 seconds; runs every command")
def test_plain_locale_has_ascii_for_everything(world: World) -> None:
    for arguments in quick_commands(world):
        if arguments[0] in ("record", "export"):
            continue
        ending = forked(arguments, environment=tool_environment({"LC_ALL": "C"}), cwd=world.folder)
        assert ending.stdout.isascii(), arguments
        assert ending.stderr.isascii(), arguments
        if "--json" in arguments:  # any name that a process of this machine has, escaped as JSON does it
            json.loads(ending.stdout)
        else:
            found = re.search(r".*\\[ux].*", ending.stdout)
            assert found is None, f"{arguments}: a sign without one that looks alike in {found[0]}"


@pytest.mark.long("each command without each descriptor")
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_closed_descriptors(world: World, closed: tuple[int, ...]) -> None:
    """What cannot be printed is an error; a file that is opened does not become standard output."""
    for arguments in quick_commands(world):
        ending = forked(arguments, closed=closed, cwd=world.folder)
        if arguments[0] == "run":
            continue  # what `true` does about it
        assert ending.status in range(6), (arguments, ending)
        if 1 in closed and "-" not in arguments and arguments[0] != "export":
            assert ending.status, f"{arguments}: what it printed is lost, and nothing said"
        if 2 not in closed:
            is_clean(ending, arguments)
    for name in ("out", "page", "metrics"):
        path = world.folder / name
        assert not path.exists() or path.read_text()[:1] in ("{", "<", "#"), "other output went into the file"


@pytest.fixture
def full() -> Iterator[int]:
    """A descriptor that takes nothing: /dev/full, which is only written to here."""
    file = os.open("/dev/full", os.O_WRONLY)
    yield file
    os.close(file)
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


@pytest.mark.long("each command")
def test_full_standard_output(world: World, full: int) -> None:
    for arguments in quick_commands(world):
        if arguments[0] == "run":
            continue
        ending = forked(arguments, stdout=full, cwd=world.folder)
        is_clean(ending, arguments)
        if arguments[0] != "export" or "-" in arguments:
            assert ending.status, arguments
            assert len(ending.stderr.splitlines()) == 1 or arguments[0] == "record", ending


@pytest.mark.long("3 seconds; runs every command")
def test_readers_that_leave(world: World) -> None:
    """| head: quietly, as other tools."""
    for arguments in quick_commands(world):
        if arguments[0] == "run":
            continue
        reader, writer = os.pipe()
        os.close(reader)
        ending = forked(arguments, stdout=writer, cwd=world.folder)
        os.close(writer)
        silent = arguments[0] == "export" and "-" not in arguments
        expected = (0,) if silent else (-signal.SIGPIPE, 4)
        assert ending.status in expected, (arguments, ending)
        assert "Broken pipe" not in ending.stderr


@pytest.mark.long("3 seconds; runs every command")
def test_a_folder_that_is_gone(world: World) -> None:
    """The working directory was removed, or may not be read."""
    gone = world.folder / "gone"
    for arguments in quick_commands(world):
        gone.mkdir()
        ending = forked_in(gone, arguments)
        is_clean(ending, arguments)


def forked_in(folder: Path, arguments: list[str]) -> Ending:
    """The folder is removed before the tool begins."""
    before = Path.cwd()
    os.chdir(folder)
    folder.rmdir()
    try:
        return forked(arguments)
    finally:
        os.chdir(before)


# ---- completion, interruption -----------------------------------------------------------------------


@pytest.mark.long("a second of processor time")
def test_completion(world: World, tally: Tally) -> None:
    for _ in counted(tally):
        words = " ".join(["hakmem", world.one_of(*COMMANDS), *(world.word() for _ in range(2))])
        environment = {
            "_HAKMEM_COMPLETE": world.one_of("bash_complete", "zsh_complete", "fish_complete", "x", "bash_x"),
            "COMP_WORDS": words.replace("\0", ""),
            "COMP_CWORD": world.one_of("0", "1", "2", "3", "9"),
        }
        ending = forked([], environment=tool_environment(environment), cwd=world.folder)
        if ending.status != 1 or ending.stderr:  # click is silent about a shell that it does not know
            is_clean(ending, environment)


@pytest.mark.long("3 seconds; interrupts at random")
def test_ctrl_c_at_any_moment(world: World, tool: Tool, tally: Tally) -> None:
    """From the first instruction of ours on it dies of the signal, without a word.  What the interpreter does
    before that is its own: it is left out by waiting until SIGINT's handler is reset."""
    for _ in counted(tally):
        arguments = world.chance.choice(quick_commands(world)[2:])
        if arguments[0] == "run":
            continue
        with subprocess.Popen(
            [str(tool.path), *arguments],
            env=tool_environment(),
            cwd=world.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            begun = wait_for_entry(process)
            time.sleep(world.chance.random() * 0.5)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        if begun:
            assert process.returncode in (-signal.SIGINT, 0, 1, 4), (arguments, process.returncode, said)
            for word in (*NEVER, "KeyboardInterrupt", "Aborted"):
                assert word not in said, (arguments, said)


def wait_for_entry(process: subprocess.Popen[str]) -> bool:
    """Until Python's handler of SIGINT has come, and gone: entry.py is at work."""
    seen = False
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        try:
            caught = int(re.search(r"^SigCgt:\s*(\w+)", status.read_text(), re.MULTILINE)[1], 16)  # type: ignore[index]
        except (OSError, TypeError):
            return False
        is_caught = bool(caught >> (signal.SIGINT - 1) & 1)
        if seen and not is_caught:
            return True
        seen = seen or is_caught
    return False


@pytest.mark.long("4 seconds of processes that end")
def test_processes_that_die_meanwhile(world: World, lib: Path, compile_c: Compile, tally: Tally) -> None:
    program = compile_c(PROGRAMS / "busy.c")
    for _ in counted(tally):
        command = world.one_of("stat", "why", "record", "top")
        with running([program, "60"], lib) as process:
            words = {"record": ["--for", "5s", "--every", "20ms", "-o", "out"], "top": []}
            killer = subprocess.Popen(
                ["sh", "-c", f"sleep {world.chance.random() * 0.2:.3f}; kill -9 {process.pid}"]
            )
            ending = forked([command, process.pid, *words.get(command, [])], cwd=world.folder)
            killer.wait()
        is_clean(ending, command)
        assert ending.status in (0, 4), (command, ending)
