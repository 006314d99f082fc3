"""The tool in a fork of this Python: a real process with its own descriptors, limits and signals, without the
third of a second that the interpreter and its imports take.

ending = forked(["stat", "1"], closed=(1,), environment={"COLUMNS": "20"})"""

import functools
import importlib
import os
import resource
import select
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from preload import clean_environment

LIMIT_S = 60
MEMORY_BYTES_MAX = 4 << 30  # of address space beyond what this Python has
# What no command may ever say.
NEVER = ("Traceback", "bug in the tool", "Exception ignored", "Warning:", "Fatal Python", "\x1b]")


@dataclass(frozen=True)
class Ending:
    """How it ended; a negative status is a signal's."""

    status: int
    stdout: str
    stderr: str


def tool_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The tool itself never runs on hakmem."""
    return clean_environment() | {"COLUMNS": "110"} | dict(environment or {})


@functools.cache
def import_everything() -> None:
    """Before the first fork."""
    import hakmem.base.streams
    import hakmem.cli

    for command in hakmem.cli.COMMANDS:
        importlib.import_module(f"hakmem.commands.{command}")


def forked(
    arguments: Sequence[object],
    *,
    environment: Mapping[str, str] | None = None,
    closed: Sequence[int] = (),
    stdout: int | None = None,
    stdin: str = os.devnull,
    cwd: Path | None = None,
    limit_s: int = LIMIT_S,
) -> Ending:
    """Runs `hakmem ARGUMENTS`, in this environment if one is given; `stdout` is a descriptor, else what it
    writes is returned.  After `limit_s` it gets SIGALRM."""
    import_everything()
    pipes = [os.pipe(), os.pipe()]
    words = [str(word) for word in arguments]
    child = os.fork()
    if child == 0:
        status = 99
        try:
            begin(pipes, closed, stdout, stdin, cwd, environment)
            if words[:1] != ["run"]:  # the program's memory is its own
                limit_memory()
            signal.alarm(limit_s)
            from hakmem.entry import main

            status = main(words)
        except BaseException as error:  # noqa: BLE001, RUF100 - a traceback, as the interpreter prints it
            os.write(2, f"Traceback: {error!r}".encode(errors="replace"))
        finally:
            os._exit(status & 0xFF)
    texts = drained(pipes)
    return Ending(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *texts)


def drained(pipes: Sequence[tuple[int, int]]) -> list[str]:
    """Until nothing holds their other ends: what `run` leaves behind writes last."""
    texts = {reader: bytearray() for reader, _ in pipes}
    poll = select.poll()
    for reader, writer in pipes:
        os.close(writer)
        poll.register(reader, select.POLLIN)
    left = len(pipes)
    while left:
        for reader, _ in poll.poll():
            some = os.read(reader, 1 << 16)
            texts[reader] += some
            if not some:
                poll.unregister(reader)
                os.close(reader)
                left -= 1
    return [text.decode(errors="replace") for text in texts.values()]


def begin(
    pipes: Sequence[tuple[int, int]],
    closed: Sequence[int],
    stdout: int | None,
    stdin: str,
    cwd: Path | None,
    environment: Mapping[str, str] | None,
) -> None:
    """In the child: descriptors, environment."""
    os.setpgid(0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(stdin, os.O_RDONLY), 0)
    os.dup2(pipes[0][1] if stdout is None else stdout, 1)
    os.dup2(pipes[1][1], 2)
    for ends in pipes:
        for end in ends:
            os.close(end)
    os.environ.clear()
    os.environ.update(tool_environment() if environment is None else environment)
    if cwd is not None:
        os.chdir(cwd)
    for number in closed:
        os.close(number)
    sys.stdin = None  # type: ignore[assignment]


def limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    limit = used + MEMORY_BYTES_MAX
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def is_clean(ending: Ending, what: object) -> None:
    """A line for an error, and never a traceback, a warning or a hang."""
    assert ending.status != -signal.SIGALRM, f"it hangs: {what}"
    assert ending.status in range(6) or ending.status in (126, 127), f"{what}: {ending}"
    for word in NEVER:
        assert word not in ending.stderr, f"{what}: {ending.stderr}"
    has_problems = ending.status == 1 and "problem" in ending.stdout  # doctor's answer: no error
    if ending.status not in (0, 2) and not has_problems:
        assert "\nhakmem: " in f"\n{ending.stderr}", f"{what}: {ending}"
