"""`hakmem run --stats` and `--json`: a watcher reports when the program exits without its report.

The program replaces the tool's process, so a second process watches.  It is not a child of the program, which
might wait for any child, and not in its session, so Ctrl-C does not reach it.  It sleeps until the program
ends.

    run ──fork──▶ helper ──fork──▶ watcher      helper ends at once: init adopts the watcher
     └──exec──▶ program ─ ─ ─ ends ─ ─ ─▶ is the report there?

The report is written at exit: not after _exit, a signal, or an exec of a program without hakmem."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import stat
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hakmem.base.errors import HakmemError
from hakmem.launch.scratch import Scratch

INIT = 1
POLL_S = 0.1  # between two looks at the program's user
OR_LEFT = "called _exit, which skips exit handlers, or executed a program without hakmem"
# linux/pidfd.h: the first version of struct pidfd_info, and the request.
PIDFD_INFO = struct.Struct("=QQ11Ii")
PIDFD_GET_INFO, PIDFD_INFO_EXIT = 0xC040FF0B, 1 << 3


@dataclass(frozen=True)
class Expected:
    """How to recognise that the report was written, and what to clean up."""

    is_there: Callable[[], bool]
    folder: Scratch | None = None

    def clear(self) -> None:
        if self.folder is not None:
            self.folder.remove()


def expected_mark() -> tuple[Expected, str] | None:
    """For a report on standard error: the library also creates a marker file.  Returned with the value of
    HAKMEM_STATS; None if no directory can be created.  The directory is private: in a shared one another user
    could plant a link for the library to follow."""
    try:
        folder = Scratch.make()
    except HakmemError:
        return None
    mark = folder.path / str(os.getpid())
    return Expected(mark.exists, folder), f"1:{folder.path}/%p"


def expected_file(pattern: str) -> Expected:
    """For a report in a file, which may exist already."""
    path = Path(pattern.replace("%p", str(os.getpid())))
    before = signature(path)
    return Expected(lambda: signature(path) not in (None, before))


def signature(path: Path) -> tuple[int, int, int] | None:
    """Changes whenever the file is written."""
    try:
        found = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):  # a FIFO or a device: nothing remains of the output
        return (0, 0, time.monotonic_ns())
    return found.st_ino, found.st_size, found.st_mtime_ns


def watch(expected: Expected, name: str) -> int | None:
    """Starts the watcher and returns at once; it lives as long as this process, whatever program it
    executes.  A byte written to the returned descriptor cancels it: nothing was run.  As the first process of
    a container the program itself would adopt the watcher: there is none then, and None is returned."""
    pid = os.getpid()
    try:
        if pid == INIT:
            raise OSError
        program = os.pidfd_open(pid)
        begun, cancel = os.pipe()  # closed by exec: then the program has started
        helper = os.fork()
    except OSError:
        expected.clear()
        return None
    if helper:
        os.close(program)
        os.close(begun)
        os.waitpid(helper, 0)
        return cancel
    try:
        os.setsid()
        if not os.fork():
            os.close(cancel)
            keep_only({2, program, begun, *([expected.folder.lock] if expected.folder else [])})
            if not os.read(begun, 1):
                be_watcher(program, pid, expected, name)
            expected.clear()
    finally:
        os._exit(0)


def keep_only(kept: set[int]) -> None:
    """Closes all other descriptors: the watcher must not keep the program's files, pipes and locks open."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with suppress(OSError):
                os.close(int(name))
    with suppress(OSError):
        os.chdir("/")


def be_watcher(program: int, pid: int, expected: Expected, name: str) -> None:
    """Reports why, if the program has ended without its report.  A program that changed its user could not
    create the file."""
    poller, is_other_user = select.poll(), False
    poller.register(program, select.POLLIN)
    while not poller.poll(1000 * POLL_S):
        with suppress(OSError, IndexError):
            is_other_user |= user_of(pid) != os.geteuid()
    if not expected.is_there() and not is_other_user:
        said = f"hakmem: {name} (PID {pid}) exited without its report: {why_it_left(program, pid)}\n"
        os.write(2, said.encode(errors="replace"))


def user_of(pid: int) -> int:
    """The effective one."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("\nUid:")[2].split()[1])


def why_it_left(program: int, pid: int) -> str:
    """The reason, as far as it is known."""
    status = exit_status(program, pid)
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"it was killed by signal {number} ({signal.strsignal(number)})"
    return f"it {'was killed by a signal, or ' if status is None else ''}{OR_LEFT}"


def exit_status(program: int, pid: int) -> int | None:
    """As from waitpid: in /proc until its parent has waited for it, then by the pidfd (Linux 6.15)."""
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if fields[0] == "Z":
            return int(fields[-1])
    answer = bytearray(PIDFD_INFO.pack(PIDFD_INFO_EXIT, *[0] * 13))
    try:
        fcntl.ioctl(program, PIDFD_GET_INFO, answer)
    except OSError:
        return None
    mask, *_, status = PIDFD_INFO.unpack(answer)
    return int(status) if mask & PIDFD_INFO_EXIT else None
