"""The tool in a fork of this Python: a real process with its own descriptors, limits and signals, without the
third of a second that the interpreter and its imports take.

ending = forked(["stat", "1"], closed=(1,), environment={"COLUMNS": "20"})"""

import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from preload import clean_environment

LIMIT_S = 20
MEMORY_BYTES_MAX = 4 << 30  # of address space beyond what this Python has
# What no command may ever say.
NEVER = ("Traceback", "bug in the tool", "Exception ignored", "Warning:", "Fatal Python", "\x1b]")


@dataclass(frozen=True)
class Ending:
    """How it ended; a negative status is a signal's."""

    status: int
    stdout: str
    stderr: str


def import_everything() -> None:
    """Before the first fork."""
    import hakmem.base.streams
    import hakmem.cli
    import hakmem.commands.completion
    import hakmem.views.metrics
    import hakmem.views.recording
    import hakmem.views.report
    import hakmem.views.snapshot_text
    import hakmem.views.top
    import hakmem.views.why_text  # noqa: F401


def forked(
    arguments: Sequence[str | Path | int],
    *,
    environment: Mapping[str, str] | None = None,
    closed: Sequence[int] = (),
    stdout: int | None = None,
    stdin: str = os.devnull,
    cwd: Path | None = None,
    limit_s: int = LIMIT_S,
) -> Ending:
    """Runs `hakmem ARGUMENTS`; `stdout` is a descriptor, else it is kept and returned."""
    import_everything()
    files = [os.memfd_create(name) for name in ("stdout", "stderr")]
    words = [str(word) for word in arguments]
    child = os.fork()
    if child == 0:
        status = 99
        try:
            begin(files, closed, stdout, stdin, cwd, environment, limit_s)
            from hakmem.entry import main

            status = main(words)
        except BaseException as error:  # noqa: BLE001, RUF100 - a traceback, as the interpreter prints it
            os.write(files[1], f"Traceback: {error!r}".encode(errors="replace"))
        finally:
            os._exit(status & 0xFF)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = [os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace") for file in files]
    for file in files:
        os.close(file)
    return Ending(status, *texts)


def begin(
    files: Sequence[int],
    closed: Sequence[int],
    stdout: int | None,
    stdin: str,
    cwd: Path | None,
    environment: Mapping[str, str] | None,
    limit_s: int,
) -> None:
    """In the child: descriptors, environment, limits."""
    os.setpgid(0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(stdin, os.O_RDONLY), 0)
    os.dup2(files[0] if stdout is None else stdout, 1)
    os.dup2(files[1], 2)
    os.environ.clear()
    os.environ.update(clean_environment() | {"COLUMNS": "110"})
    os.environ.update(environment or {})
    if cwd is not None:
        os.chdir(cwd)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    limit = used + MEMORY_BYTES_MAX
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for number in closed:
        os.close(number)
    sys.stdin = None  # type: ignore[assignment]
    signal.alarm(limit_s)


def is_clean(ending: Ending, what: object) -> None:
    """A line for an error, and never a traceback, a warning or a hang."""
    assert ending.status != -signal.SIGALRM, f"it hangs: {what}"
    assert ending.status in range(6) or ending.status in (126, 127), f"{what}: {ending}"
    for word in NEVER:
        assert word not in ending.stderr, f"{what}: {ending.stderr}"
    has_problems = ending.status == 1 and "problem" in ending.stdout  # doctor's answer: no error
    if ending.status not in (0, 2) and not has_problems:
        assert "\nhakmem: " in f"\n{ending.stderr}", f"{what}: {ending}"
